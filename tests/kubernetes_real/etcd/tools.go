//go:build tools

// Package tools names the program that is built, so that go.sum has all that it needs.
package tools

import _ "go.etcd.io/etcd/server/v3"
