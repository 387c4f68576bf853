package authtest_test

import (
	"testing"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
)

func TestMemory(t *testing.T) {
	authtest.Run(t, func(*testing.T) auth.Store { return authtest.NewMemory() }, nil)
}
