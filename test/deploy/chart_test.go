package deploy_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

var updateChart = flag.Bool("update-chart", false, "write testdata/chart anew") //nolint:gochecknoglobals // a flag of the test

const kubernetes = "--kube-version=1.31.0" // Helm's own default is older than the chart supports

// chartForms are the arguments of Helm for each form of the chart.
func chartForms(t *testing.T) map[string][]string {
	t.Helper()
	values, err := filepath.Abs(root + "/deploy/helm/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"single": {"--set=baseURL=https://go.example.com"},
		"fleet":  {"--values=" + values},
	}
}

// TestChartValues holds the values against their schema and the binary. It needs no Helm.
func TestChartValues(t *testing.T) {
	t.Parallel()
	chart := root + "/deploy/helm/curt"
	judge := tool(t, "venv/bin/check-jsonschema", "make test installs it by scripts/venv")
	output(t, root, judge, "--schemafile", "deploy/helm/curt/values.schema.json", "deploy/helm/curt/values.yaml", "deploy/helm/fleet.yaml")
	refused := refusedValues()
	args, folder := []string{"--schemafile", "deploy/helm/curt/values.schema.json"}, t.TempDir()
	for i, r := range refused {
		broken := filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		write(t, broken, "baseURL: https://go.example.com\n"+r.values)
		args = append(args, broken)
	}
	said, err := run(t, root, judge, args...)
	if err == nil {
		t.Error("wrong values pass")
	}
	for i, r := range refused {
		if lines := regexp.MustCompile(fmt.Sprintf(`(?m)/%d\.yaml::.*$`, i)).FindAllString(said, -1); !strings.Contains(strings.Join(lines, "\n"), r.want) {
			t.Errorf("%s: want a line with %q\n%q", r.values, r.want, lines)
		}
	}
	checkRoles(t, chart+"/values.yaml")
	checkRoutes(t, chart+"/values.yaml")
	checkChartSettings(t, chart)
}

// refusedValues are values that the schema refuses, and what it says.
func refusedValues() []struct{ values, want string } {
	return []struct{ values, want string }{
		{"replicas: 2", "replicas"},
		{"mode: cluster", "cluster"},
		{"settings: {PATH: /bin}", "PATH"},
		{"adminKeySecret: \"a b\"", "a b"},
		{"drain: {delaySeconds: 5s}", "5s"},
		{"roles: {redirect: {replicas: many}}", "many"},
		{"roles: {redirect: {replica: 2}}", "replica"},
		{"roles: {Redirect: {}}", "Redirect"},
		{"roles: {api: {readyPath: /metrics}}", "/metrics"},
		{"roles: {api: {routes: [{type: Prefix, path: /}]}}", "Prefix"},
		{"roles: {worker: {spread: {zone: Never}}}", "Never"},
		{"external: {postgresql: {url: \"postgres://h/d\"}}", "url"},
		{"files: [{path: /etc/x, secret: a, configMap: b}]", "files"},
		{"gateway: {enabled: true, parentRefs: [public]}", "public"},
		{"serviceMonitor: {interval: often}", "often"},
		{"networkPolicy: {egress: [all]}", "all"},
		{"migrate: {args: [--retention=72h, serve]}", "serve"},
		{"service: {port: 0}", "minimum"},
		{"persistence: {accessMode: ReadWriteMany}", "ReadWriteMany"},
		{"roles: {worker: {autoscaling: {lag: {\"a b\": 1}}}}", "a b"},
		{"roles: {redirect: {data: {size: \"; rm\"}}}", "; rm"},
		{"ingress: {enabled: true, paths: [{path: /x}]}", "role"},
		{"roles: {redirect: {resources: {request: {cpu: 1}}}}", "request"},
		{"roles: {redirect: {autoscaling: {minReplicas: 0}}}", "minimum"},
		{"roles: {redirect: {settings: {curt_fold: pause}}}", "curt_fold"},
		{"roles: {redirect: {maxUnavailable: half}}", "half"},
		{"external: {redis: {secret: \"redis://:p@host\"}}", "redis://:p@host"},
		{"image: {pullPolicy: Sometimes}", "Sometimes"},
		{"roles: {admin: {}}", "admin"},
		{"roles: {averylongname: {}}", "averylongname"}, // names of objects have 63 characters
	}
}

// checkRoles compares the roles of the chart with those that the binary names.
func checkRoles(t *testing.T, values string) {
	t.Helper()
	said, err := runCurt(t, []string{"HOME=/"}, "config", "check", "--role=none-such", "--data="+t.TempDir())
	named := regexp.MustCompile(`expected all, or some of (.+?) \(`).FindStringSubmatch(said)
	if err == nil || named == nil {
		t.Fatalf("a strange role: %v\n%s", err, said)
	}
	var chart struct{ Roles map[string]any }
	text, err := os.ReadFile(values)
	if err == nil {
		err = yaml.Unmarshal(text, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	roles := regexp.MustCompile(`, | and `).Split(named[1], -1)
	slices.Sort(roles)
	if diff := cmp.Diff(roles, slices.Sorted(maps.Keys(chart.Roles))); diff != "" {
		t.Errorf("roles of the binary and of the chart differ (-binary +chart):\n%s", diff)
	}
}

// checkRoutes follows paths through the routes of the chart, as the Gateway API orders them.
func checkRoutes(t *testing.T, values string) {
	t.Helper()
	var chart struct {
		Roles map[string]struct {
			Routes []struct{ Type, Path string }
		}
	}
	var api struct{ Paths map[string]any }
	for file, into := range map[string]any{values: &chart, root + "/api/openapi.yaml": &api} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"/aBc": "redirect", "/aBc+": "redirect", "/aBc/qr": "redirect", "/aBc/stats/x": "redirect", "/problems": "redirect", "/apis": "redirect", "/static/pages.css": "redirect", "/.well-known/security.txt": "redirect", "/": "api", "/report": "api", "/appeal": "api", "/app": "api", "/app/links": "api", "/aBc/stats": "api", "/problems/expired": "api", "/api/docs": "api"}
	for path := range api.Paths {
		want[path] = "api"
	}
	for path, role := range want {
		best, found := -1, "none"
		for name, r := range chart.Roles {
			for _, route := range r.Routes {
				rank := -1
				switch prefix := strings.TrimSuffix(route.Path, "/"); {
				case route.Type == "Exact" && path == route.Path:
					rank = 2000
				case route.Type == "RegularExpression" && regexp.MustCompile(route.Path).MatchString(path):
					rank = 1000
				case route.Type == "PathPrefix" && strings.HasPrefix(path+"/", prefix+"/"):
					rank = len(prefix)
				}
				if rank > best {
					best, found = rank, name
				}
			}
		}
		if found != role {
			t.Errorf("%s goes to %s, want %s", path, found, role)
		}
	}
	if len(want) < 40 {
		t.Errorf("only %d paths", len(want))
	}
}

// checkChartSettings looks for the settings and metrics that the chart names.
func checkChartSettings(t *testing.T, chart string) {
	t.Helper()
	named := regexp.MustCompile(`CURT_[A-Z_]+[A-Z]|\bcurt_[a-z_]+[a-z]`)
	var documents []byte
	for _, name := range []string{"configuration", "operations"} {
		text, err := os.ReadFile(root + "/docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text...)
	}
	files, err := filepath.Glob(chart + "/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range append(files, chart+"/values.yaml", root+"/deploy/helm/fleet.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range named.FindAll(text, -1) {
			found[string(s)] = true
			if !bytes.Contains(documents, append(append([]byte("`"), s...), '`')) {
				t.Errorf("%s: %s is in no document", name, s)
			}
		}
	}
	if !found["CURT_ROLE"] || !found["curt_worker_lag_events"] {
		t.Errorf("the chart names only %v", found)
	}
}

// TestChart has Helm lint the chart and render its forms. Helm is long to compile, so that
// make release-check does it.
func TestChart(t *testing.T) {
	helm := releaseTool(t, "helm")
	for form, args := range chartForms(t) {
		output(t, root, helm, append([]string{"lint", "--strict", "deploy/helm/curt"}, args...)...)
		golden := "testdata/chart/" + form + ".txt"
		got := summary(t, render(t, helm, args...))
		if *updateChart {
			write(t, golden, got)
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s differs, -update-chart writes it anew (-want +got):\n%s", golden, diff)
		}
	}
	// A later role is an entry of a map, and null removes one.
	other := summary(t, render(t, helm, append(chartForms(t)["fleet"], "--set=roles.cook.role=api,roles.cook.replicas=3,roles.worker=null,settings.CURT_CODES=range")...))
	for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
		if !strings.Contains(other, kind+" x-curt-cook\n") {
			t.Errorf("no %s of a further role", kind)
		}
	}
	if strings.Count(other, "CURT_ROLE=api") != 2 || strings.Contains(other, "x-curt-worker") || strings.Contains(other, "x-curt-keys") {
		t.Errorf("with a further role, without worker, and without a pool:\n%s", other)
	}
	for args, want := range map[string]string{
		"baseURL=":                     "baseURL must be set",
		"replicas=2":                   "additional properties 'replicas' not allowed",
		"roles.redirect.replicas=many": "at '/roles/redirect/replicas': got string, want integer",
		"mode=fleet":                   "adminKeySecret must be set",
		"mode=fleet,adminKeySecret=k":  "external.postgresql.secret must be set: servers of a fleet share links in PostgreSQL",
		"mode=fleet,adminKeySecret=k,external.postgresql.secret=p": "servers of a fleet share statistics",
		"external.kafka.secret=k":                                  "must be set together",
		"external.postgresql.secret=p,external.postgresql.analyticsKey=a,external.kafka.secret=k,external.clickhouse.secret=c": "statistics have one store",
		"settings.CURT_DRAIN_DELAY=9s": "settings.CURT_DRAIN_DELAY: the chart sets it from another value",
		"gateway.enabled=true":         "gateway.parentRefs must name a Gateway",
		"mode=fleet,adminKeySecret=k,external.postgresql.secret=p,external.postgresql.analyticsKey=a,ingress.enabled=true,ingress.paths[0].role=apis,ingress.paths[0].path=/x": "ingress.paths: no role apis",
	} {
		said, err := run(t, root, helm, "template", "x", "deploy/helm/curt", kubernetes, "--set=baseURL=https://go.example.com", "--set="+args)
		if lines := regexp.MustCompile(`(?m)^.*`+regexp.QuoteMeta(want)+`.*$`).FindAllString(said, -1); err == nil || len(lines) != 1 {
			t.Errorf("%s: %v, want one line with %q\n%s", args, err, want, said)
		}
	}
}

// TestChartSchemas holds what the chart renders against the schemas of the oldest supported
// Kubernetes, of a middle one, and of the newest. The control is a field with a wrong name.
func TestChartSchemas(t *testing.T) {
	helm := releaseTool(t, "helm")
	judge := tool(t, "venv/bin/kubernetes-validate", "make release-check installs it by scripts/venv")
	for form, args := range chartForms(t) {
		rendered := render(t, helm, args...)
		file := filepath.Join(t.TempDir(), "rendered.yaml")
		write(t, file, rendered)
		objects := len(documents(t, rendered))
		for _, version := range []string{"1.25", "1.31", "1.37"} {
			said := output(t, root, judge, "--strict", "-k", version, file)
			// Its three kinds of others are for a server to examine.
			others := strings.Count(said, "gateway.networking.k8s.io/v1") + strings.Count(said, "monitoring.coreos.com/v1")
			if passed := strings.Count(said, " passed for resource "); passed+others != objects || passed < 3 {
				t.Errorf("%s, Kubernetes %s: %d of %d objects pass\n%s", form, version, passed, objects, said)
			}
		}
		write(t, file, strings.ReplaceAll(rendered, "publishNotReadyAddresses:", "publishUnreadyAddresses:"))
		if said, err := run(t, root, judge, "--strict", "-k", "1.37", file); err == nil || !strings.Contains(said, "publishUnreadyAddresses") {
			t.Errorf("a field that is none passes: %v\n%s", err, said)
		}
	}
}

func releaseTool(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv(releaseEnv) == "" {
		t.Skip("make release-check does this")
	}
	return tool(t, name, "make release-check")
}

// render returns what Helm renders.
func render(t *testing.T, helm string, args ...string) string {
	t.Helper()
	args = append([]string{"template", "x", "deploy/helm/curt", kubernetes}, args...)
	cmd := exec.CommandContext(t.Context(), helm, args...)
	cmd.Dir = root
	text, err := cmd.Output() // which links it follows is on standard error
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(text)
}

// documents decodes the objects of a rendered chart.
func documents(t *testing.T, rendered string) (all []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(rendered)); ; {
		var object map[string]any
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, rendered)
		}
		if len(object) > 0 {
			all = append(all, object)
		}
	}
}

// summary shows the objects of a rendered chart without what all of them share.
func summary(t *testing.T, rendered string) string {
	t.Helper()
	var text strings.Builder
	for _, object := range documents(t, rendered) {
		name := object["metadata"].(map[string]any)["name"]
		fmt.Fprintf(&text, "%s %s\n", object["kind"], name)
		spec, _ := object["spec"].(map[string]any)
		if template, ok := spec["template"].(map[string]any); ok {
			pod := template["spec"].(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			delete(spec, "template")
			delete(pod, "containers")
			maps.Copy(spec, pod)
			maps.Copy(spec, container)
		}
		show(&text, "  ", spec)
	}
	return text.String()
}

// show writes each field on a line, and one that does not fit on several. What all objects share, and
// what a server examines with the rest, stays out.
func show(w *strings.Builder, indent string, fields map[string]any) {
	shared := []string{"labels", "matchLabels", "selector", "podSelector", "name", "imagePullPolicy", "automountServiceAccountToken", "enableServiceLinks", "securityContext", "groups"}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(shared, key) {
			showValue(w, indent+key+":", indent+"  ", fields[key])
		}
	}
}

func showValue(w *strings.Builder, head, indent string, value any) {
	const width = 126
	line := head + " " + flow(value)
	list, isList := value.([]any)
	fields, isMap := value.(map[string]any)
	switch {
	case len(line) <= width || !isList && !isMap:
		fmt.Fprintln(w, line)
	case isMap:
		fmt.Fprintln(w, head)
		show(w, indent, fields)
	case !strings.Contains(line, "CURT_"):
		fmt.Fprintln(w, head)
		for _, part := range list {
			showValue(w, indent+"-", indent+"  ", part)
		}
	default: // variables, several to a line
		line = head
		for _, part := range list {
			if text := flow(part); len(line)+len(text) < width {
				line += " " + text
			} else {
				fmt.Fprintln(w, line)
				line = indent + text
			}
		}
		fmt.Fprintln(w, line)
	}
}

// flow is a value on one line; a variable is NAME=value, or NAME<secret/entry.
func flow(value any) string {
	var parts []string
	switch v := value.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		if from, ok := v["valueFrom"].(map[string]any); ok {
			secret := from["secretKeyRef"].(map[string]any)
			return fmt.Sprintf("%s<%s/%s", name, secret["name"], secret["key"])
		} else if text, ok := v["value"].(string); ok && name != "" {
			return name + "=" + text
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "labelSelector" {
				parts = append(parts, key+": "+flow(v[key]))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, part := range v {
			parts = append(parts, flow(part))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(value)
}
