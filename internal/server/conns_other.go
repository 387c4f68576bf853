//go:build !unix

package server

import "curt/internal/lane"

func maxConns() int { return lane.DefaultMaxConns }
