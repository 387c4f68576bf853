package deploy_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const kubernetes = "--kube-version=1.31.0" // of today; a chart names the oldest itself

// TestChart has Helm lint the chart and render it, plainly and with all that can be
// switched on. Helm is long to compile, so that make release-check does it.
func TestChart(t *testing.T) {
	if os.Getenv(releaseEnv) == "" {
		t.Skip("make release-check does this")
	}
	helm := tool(t, "helm", "make release-check")
	chart, err := filepath.Abs(filepath.Join(root, "deploy/helm/curt"))
	if err != nil {
		t.Fatal(err)
	}
	must := "--set=baseURL=https://go.example.com"
	output(t, chart, helm, "lint", "--strict", must, chart)
	if said, err := run(t, chart, helm, "template", "x", chart, kubernetes); err == nil || !strings.Contains(said, "baseURL") {
		t.Errorf("without a base URL: %v\n%s", err, said)
	}
	if said, err := run(t, chart, helm, "template", "x", chart, kubernetes, must, "--set=replicas=2"); err == nil {
		t.Errorf("a value that nobody reads passes\n%s", said)
	}
	plain := kinds(t, output(t, chart, helm, "template", "x", chart, kubernetes, must))
	whole := kinds(t, output(t, chart, helm, "template", "x", chart, kubernetes, must, "--set=ingress.enabled=true,ingress.host=go.example.com",
		"--set=serviceMonitor.enabled=true,prometheusRule.enabled=true", "--set=settings.CURT_DOMAINS=second.example"))
	if plain["StatefulSet"] != 1 || plain["Service"] != 2 || plain["Ingress"] != 0 {
		t.Errorf("the chart renders %v", plain)
	}
	for _, kind := range []string{"Ingress", "ServiceMonitor", "PrometheusRule"} {
		if whole[kind] != 1 {
			t.Errorf("with everything switched on it renders %v, no %s", whole, kind)
		}
	}
}

// kinds counts the objects of a rendered chart.
func kinds(t *testing.T, rendered string) map[string]int {
	t.Helper()
	// Helm says on standard error which links it follows; documents begin behind that.
	_, rendered, _ = strings.Cut(rendered, "---\n")
	found := map[string]int{}
	for d := yaml.NewDecoder(strings.NewReader(rendered)); ; {
		var object struct{ Kind string }
		if err := d.Decode(&object); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("%v\n%s", err, rendered)
			}
			return found
		}
		found[object.Kind]++
	}
}
