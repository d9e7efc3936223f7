//go:build tools

// Package observers names the programs that are built from modules, so that go.sum covers them.
package observers

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
