//go:build tools

// Package observers names the programs that are built from modules, so that go.sum covers them.
package observers

import (
	_ "github.com/prometheus/alertmanager/cmd/alertmanager"
	_ "github.com/prometheus/alertmanager/cmd/amtool"
)
