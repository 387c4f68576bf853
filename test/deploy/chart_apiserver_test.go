package deploy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"curt/test/internal/curttest"
)

// TestChartServer has a real API server of Kubernetes examine what the chart renders, without
// storing it: every field is known, every value valid, and every pod as restricted as the
// strictest of the Pod Security Standards wants it. Kinds of the Gateway API and of the Prometheus
// operator are added from their modules.
func TestChartServer(t *testing.T) {
	helm := releaseTool(t, "helm")
	server := startKubernetes(t)
	for _, file := range []string{
		module(t, "github.com/prometheus-operator/prometheus-operator@v0.92.0", "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
		module(t, "github.com/prometheus-operator/prometheus-operator@v0.92.0", "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
		module(t, "sigs.k8s.io/gateway-api@v1.4.0", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if status, said, _ := server.post(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", text); status != http.StatusCreated {
			t.Fatalf("%s: %d\n%s", file, status, said)
		}
	}
	for _, path := range []string{"monitoring.coreos.com/v1/servicemonitors", "monitoring.coreos.com/v1/prometheusrules", "gateway.networking.k8s.io/v1/httproutes"} {
		server.await(t, "/apis/"+path)
	}
	namespace := `{"metadata": {"name": "links", "labels": {"pod-security.kubernetes.io/warn": "restricted"}}}`
	if status, said, _ := server.post(t, "/api/v1/namespaces", []byte(namespace)); status != http.StatusCreated {
		t.Fatalf("a namespace: %d\n%s", status, said)
	}
	for form, args := range chartForms(t) {
		rendered := render(t, helm, args...)
		for _, object := range documents(t, rendered) {
			status, said, warning := server.try(t, object)
			// The server warns of its own default with every headless service.
			if status != http.StatusCreated || warning != "" && !strings.Contains(warning, "SessionAffinity is ignored") {
				t.Errorf("%s, %s: %d %s\n%s", form, object["kind"], status, warning, said)
			}
		}
	}
	checkRefused(t, server, render(t, helm, chartForms(t)["fleet"]...))
}

// checkRefused is the control: the server refuses one mistake in each kind, or warns of it.
func checkRefused(t *testing.T, server *kubernetesServer, rendered string) {
	t.Helper()
	for _, m := range []struct{ kind, right, wrong, want string }{
		{"Deployment", "maxSurge:", "maxSurges:", "spec.strategy.rollingUpdate.maxSurges"},
		{"Deployment", "runAsNonRoot: true", "runAsNonRoot: false", "would violate PodSecurity"},
		{"Deployment", "mountPath: /data", "mountPath: ''", "mountPath: Required value"},
		{"Job", "restartPolicy: Never", "restartPolicy: Always", "restartPolicy"},
		{"Ingress", "pathType: Prefix", "pathType: PathPrefix", "pathType"},
		{"HorizontalPodAutoscaler", "minReplicas: 3", "minReplicas: 300", "maxReplicas"},
		{"HTTPRoute", "type: Exact", "type: Equal", "supported values"},
		{"HTTPRoute", "type: PathPrefix, value: \"/\"", "type: PathPrefix, value: \"x\"", "must be an absolute path"},
		{"ServiceMonitor", "interval: 15s", "interval: often", "interval"},
		{"PrometheusRule", "expr:", "expression:", "unknown field"},
		{"NetworkPolicy", "[Ingress]", "[Inward]", "policyTypes"},
		{"PodDisruptionBudget", "maxUnavailable: 1", "maxUnavailable: -1", "maxUnavailable"},
	} {
		broken := strings.ReplaceAll(rendered, m.right, m.wrong)
		refused := false
		for _, object := range documents(t, broken) {
			if object["kind"] == m.kind {
				status, said, warning := server.try(t, object)
				refused = refused || (status >= 400 || warning != "") && strings.Contains(said+warning, m.want)
			}
		}
		if !refused {
			t.Errorf("%s with %q: nothing says %q", m.kind, m.wrong, m.want)
		}
	}
}

// kubernetesServer is an API server with a store of its own, and no controllers.
type kubernetesServer struct {
	url    string
	client *http.Client
}

const kubernetesToken = "chart"

// startKubernetes starts etcd and the API server, which end with the test.
func startKubernetes(t *testing.T) *kubernetesServer {
	t.Helper()
	etcd := tool(t, "venv/bin/etcd", "make release-check installs it by scripts/venv")
	program := tool(t, "kube-apiserver", "make release-check")
	folder, store, peers, at := t.TempDir(), curttest.FreeAddr(t), curttest.FreeAddr(t), curttest.FreeAddr(t)
	_, port, _ := strings.Cut(at, ":")
	cert, key := curttest.Certificate(t)
	tokens := filepath.Join(folder, "tokens.csv")
	write(t, tokens, kubernetesToken+`,test,test,"system:masters"`)
	background := context.WithoutCancel(t.Context()) // they are ended by signals, in order
	curttest.Begin(t, exec.CommandContext(background, etcd, "--data-dir="+filepath.Join(folder, "etcd"), "--listen-client-urls=http://"+store, "--advertise-client-urls=http://"+store,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers, "--initial-cluster=default=http://"+peers), store, patience)
	curttest.Begin(t, exec.CommandContext(background, program, "--etcd-servers=http://"+store, "--bind-address=127.0.0.1", "--secure-port="+port, "--tls-cert-file="+cert, "--tls-private-key-file="+key,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--token-auth-file="+tokens,
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--cert-dir="+folder), at, patience)
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !trusted.AppendCertsFromPEM(text) {
		t.Fatalf("%s: %v", cert, err)
	}
	s := &kubernetesServer{"https://" + at, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}}
	t.Cleanup(s.client.CloseIdleConnections)
	s.await(t, "/readyz")
	return s
}

// await returns once the server answers the path with 200.
func (s *kubernetesServer) await(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		status, said, _ := s.do(t, http.MethodGet, path, nil)
		if status == http.StatusOK {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%s: %d\n%s", path, status, said)
		}
	}
}

// try has an object examined as if it were to be created.
func (s *kubernetesServer) try(t *testing.T, object map[string]any) (status int, said, warning string) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	version, kind := fmt.Sprint(object["apiVersion"]), strings.ToLower(fmt.Sprint(object["kind"]))
	plural := map[string]string{"networkpolicy": "networkpolicies", "ingress": "ingresses"}[kind]
	if plural == "" {
		plural = kind + "s"
	}
	prefix := "/apis/"
	if version == "v1" {
		prefix = "/api/"
	}
	return s.post(t, prefix+version+"/namespaces/links/"+plural+"?dryRun=All&fieldValidation=Strict", text)
}

func (s *kubernetesServer) post(t *testing.T, path string, text []byte) (status int, said, warning string) {
	t.Helper()
	return s.do(t, http.MethodPost, path, text)
}

func (s *kubernetesServer) do(t *testing.T, method, path string, text []byte) (status int, said, warning string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+kubernetesToken)
	r.Header.Set("Content-Type", "application/yaml")
	a, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body), strings.Join(a.Header.Values("Warning"), "; ")
}

// module returns the path of a file of a Go module, whose sum Go compares with the checksum database.
func module(t *testing.T, name, file string) string {
	t.Helper()
	var found struct{ Dir string }
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	cmd.Dir = t.TempDir() // not a requirement of this module
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return filepath.Join(found.Dir, file)
}
