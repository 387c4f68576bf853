package codegentest_test

import (
	"testing"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
)

func TestModelKeepsTheContract(t *testing.T) {
	codegentest.RunLeaser(t,
		func(*testing.T) codegen.Leaser { return codegentest.NewLeaser() },
		func(_ *testing.T, l codegen.Leaser) codegen.Leaser { return l })
}
