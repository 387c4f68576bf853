package probe

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// edit puts a line behind the first line of a file that contains another text.
type edit struct{ file, behind, line string }

// ofTheOwner are the edits for a text that only the owner sees.
func ofTheOwner() []edit {
	const (
		api   = "internal/httpapi/links/link.go"
		flags = "internal/cli/links/flags.go"
	)
	return []edit{
		{"internal/link/link.go", "Title     string", "	Note string"},
		{"internal/link/fields.go", `{Name: "tags", Column:`, `	{Name: "note", Kind: Text, Max: 1000, Of: func(l *Link) any { return &l.Note }},`},
		{"internal/shorten/request.go", "Cacheable    Field[bool]", "	Note Field[string] `field:\"note\"`"},
		{api, `json:"title"` + "`", "	Note *string `json:\"note\"`"},
		{api, "Title        kernel.Opt[string]", "	Note kernel.Opt[string] `json:\"note\" required:\"false\" maxLength:\"1000\"`"},
		{api, "return shorten.Fields{", "		Note: f.Note.Field,"},
		{api, "	return Link{", "		Note: kernel.Optional(&l.Note),"},
		{"internal/exchange/record.go", `json:"version,omitempty"`, "	Note string `json:\"note,omitempty\"`"},
		{flags, "type createFlags struct {", "	Note string `help:\"A note for yourself.\"`"},
		{flags, "type changeFlags struct {", "	Note *string `help:\"A note for yourself.\"`"},
		{flags, `{"title", "--title", c.Title, asText},`, `		{"note", "--note", c.Note, asText},`},
		{flags, "l := client.NewLink{", "		Note: c.Note,"},
	}
}

// ofTheAnswer are the edits for a flag that forbids to keep the answer.
func ofTheAnswer() []edit {
	const (
		api    = "internal/httpapi/links/link.go"
		flags  = "internal/cli/links/flags.go"
		target = "internal/link/target.go"
		redis  = "internal/backend/redis/entry.go"
	)
	return []edit{
		{"internal/link/link.go", "Title     string", "	Fleeting bool"},
		{"internal/link/fields.go", `{Name: "tags", Column:`, `	{Name: "fleeting", Kind: Answer, Needs: 1, Of: func(l *Link) any { return &l.Fleeting }},`},
		{target, "Cacheable    bool", "	Fleeting bool"},
		{target, "Destination: l.Destination, Fallback:", "		Fleeting: l.Fleeting,"},
		{"internal/redirect/resolver.go", "func cacheControl(", "	if t.Fleeting {\n		return noStore\n	}"},
		{redis, "	flagCacheable", "	flagFleeting"},
		{redis, "{t.Cacheable, flagCacheable},", "		{t.Fleeting, flagFleeting},"},
		{redis, "t.ForwardQuery, t.NoIndex, t.Cacheable =", "	t.Fleeting = flags&flagFleeting != 0"},
		{"internal/shorten/request.go", "Cacheable    Field[bool]", "	Fleeting Field[bool] `field:\"fleeting\"`"},
		{api, `json:"cacheable"` + "`", "	Fleeting bool `json:\"fleeting\"`"},
		{api, "Cacheable    kernel.Opt[bool]", "	Fleeting kernel.Opt[bool] `json:\"fleeting\" required:\"false\"`"},
		{api, "return shorten.Fields{", "		Fleeting: f.Fleeting.Field,"},
		{api, "	return Link{", "		Fleeting: l.Fleeting,"},
		{"internal/exchange/record.go", `json:"version,omitempty"`, "	Fleeting bool `json:\"fleeting,omitempty\"`"},
		{flags, "type createFlags struct {", "	Fleeting bool `help:\"Let nobody keep the answer.\"`"},
		{flags, "type changeFlags struct {", "	Fleeting *bool `negatable:\"\" help:\"Let nobody keep the answer.\"`"},
		{flags, "map[string]*bool{", `		"fleeting": c.Fleeting,`},
		{flags, "l := client.NewLink{", "		Fleeting: c.Fleeting,"},
	}
}

// files counts those that are edited. What `make api` writes is not edited.
func files(edits []edit) int {
	all := map[string]bool{}
	for _, e := range edits {
		all[e.file] = true
	}
	return len(all)
}

// copied returns a copy of the project with the edits, and what is generated anew.
func copied(t *testing.T, edits ...edit) (folder string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for name := range bytes.SplitSeq(run(t, root, "git", "ls-files", "-z"), []byte{0}) {
		text, err := os.ReadFile(filepath.Join(root, string(name)))
		if len(name) == 0 || os.IsNotExist(err) {
			continue
		}
		to := filepath.Join(folder, string(name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range edits {
		apply(t, folder, e)
	}
	run(t, folder, "go", "test", "./internal/httpapi", "-run", "TestClientTypesAreCommitted", "-update")
	return folder
}

func apply(t *testing.T, folder string, e edit) {
	t.Helper()
	path := filepath.Join(folder, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), e.behind)
	rest, end, _ := strings.Cut(after, "\n")
	if !found {
		t.Fatalf("%s has no %q", e.file, e.behind)
	}
	if err := os.WriteFile(path, []byte(before+e.behind+rest+"\n"+e.line+"\n"+end), 0o644); err != nil {
		t.Fatal(err)
	}
}

// built returns the binary of a copy.
func built(t *testing.T, folder string) string {
	t.Helper()
	to := filepath.Join(folder, "curt.later")
	run(t, folder, "go", "build", "-trimpath", "-o", to, "./cmd/curt")
	return to
}

func run(t *testing.T, folder string, command ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", command, err, out, complaint.Bytes())
	}
	return out
}
