//go:build generated

// Package clients names what generated clients import, so that go mod tidy keeps it.
package clients

import (
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
	_ "gopkg.in/validator.v2"
)
