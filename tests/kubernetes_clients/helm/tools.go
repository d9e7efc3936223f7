//go:build tools

// Package tools names what is built, so that go.sum has all of it.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
