package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// marked returns the tests whose first statement calls a function of internal/testkit, by
// the folder of their package.
func marked(by string) (map[string][]string, error) {
	return tests(func(f *ast.FuncDecl) bool { return strings.HasPrefix(f.Name.Name, "Test") && begins(f, by) })
}

// unmarked is marked for everything else that a test binary runs.
func unmarked(by string) (map[string][]string, error) {
	return tests(func(f *ast.FuncDecl) bool {
		name := f.Name.Name
		runs := strings.HasPrefix(name, "Test") && name != "TestMain" || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
		return runs && f.Recv == nil && !begins(f, by)
	})
}

// tests returns the names of functions in test files, by the folder of their package.
func tests(wanted func(*ast.FuncDecl) bool) (map[string][]string, error) {
	found := make(map[string][]string)
	for _, folder := range []string{"cmd", "internal", "test"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("find tests: %w", err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && wanted(f) {
					dir := filepath.ToSlash(filepath.Dir(path))
					found[dir] = append(found[dir], f.Name.Name)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// begins reports whether a test begins with testkit.NAME(t).
func begins(f *ast.FuncDecl, name string) bool {
	if len(f.Body.List) == 0 {
		return false
	}
	s, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || of.Sel.Name != name {
		return false
	}
	pkg, ok := of.X.(*ast.Ident)
	return ok && pkg.Name == "testkit"
}
