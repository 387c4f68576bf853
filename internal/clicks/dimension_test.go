package clicks_test

import (
	"testing"

	"curt/internal/clicks"
)

func TestDimensionNames(t *testing.T) {
	for d := range clicks.Dimension(clicks.NumDimensions) {
		if got, ok := clicks.ParseDimension(d.String()); !ok || got != d {
			t.Errorf("%v is read as %v", d, got)
		}
	}
	if _, ok := clicks.ParseDimension("address"); ok {
		t.Error("there is a dimension of addresses")
	}
}
