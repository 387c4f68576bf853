package lane_test

import (
	"os"
	"testing"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }
