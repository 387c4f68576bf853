package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change to one file. Its ID is made of what it does, not of where:
// lines may move above it and it keeps its ID, and with it its reason in reasons.txt.
type mutant struct {
	ID       string `json:"id"`
	Target   string `json:"target"`
	File     string `json:"file"` // from the module's root
	Line     int    `json:"line"`
	Func     string `json:"func"`
	Operator string `json:"operator"`
	From     string `json:"from"`
	To       string `json:"to"`
	Text     string `json:"text"` // hash of the function: a result is void when it changes

	start, end int // what To replaces
	reach      int // the line that a test covers when it runs this one
}

// opposites are operators and their defects, of which the first negates.
func opposites() map[token.Token][]string {
	return map[token.Token][]string{
		token.EQL: {"!="}, token.NEQ: {"=="},
		token.LSS: {">=", "<="}, token.LEQ: {">", "<"}, token.GTR: {"<=", ">="}, token.GEQ: {"<", ">"},
		token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
		token.AND: {"|"}, token.OR: {"&"}, token.XOR: {"|"}, token.AND_NOT: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
		token.ADD_ASSIGN: {"-=", "="}, token.SUB_ASSIGN: {"+="}, token.OR_ASSIGN: {"&="}, token.AND_ASSIGN: {"|="},
		token.XOR_ASSIGN: {"="}, token.MUL_ASSIGN: {"="}, token.SHL_ASSIGN: {">>="}, token.SHR_ASSIGN: {"<<="},
	}
}

// swapped are names of functions that are each other's likeliest mistake.
func swapped() map[string]string {
	return map[string]string{"min": "max", "max": "min", "Before": "After", "After": "Before"}
}

// said are calls whose arguments only people read, and counters that only metrics show.
var said = regexp.MustCompile(`^(fmt\.(Errorf|Sprintf)|errors\.New|panic|slog\..*|.*\b(log|logger|Logger)\.(Log|Debug|Info|Warn|Error)\w*|` +
	`.*\b(stats|metrics|counts)\b.*\.(Add|Inc|Dec|Store|Set|Observe|effect|decided)|.*\.(Inc|Observe|WithLabelValues))$`)

// finder collects the mutants of one file.
type finder struct {
	target, file string
	src          []byte
	fset         *token.FileSet
	fn           *ast.FuncDecl
	seen         map[string]int
	cases        [][2]ast.Node // of expressions after "case": coverage knows only their switch
	found        []mutant
}

// mutants returns those of the target's files, in an order that the seed alone decides:
// adding or removing code elsewhere does not shuffle the others.
func mutants(root string, t target, seed string) ([]mutant, error) {
	var all []mutant
	for _, name := range t.Files {
		file := filepath.Join(t.Dir, name)
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("read a file to change: %w", err)
		}
		f := finder{target: t.Name, file: file, src: src, fset: token.NewFileSet(), seen: map[string]int{}}
		parsed, err := parser.ParseFile(f.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !slices.Contains(t.Except, fn.Name.Name) {
				f.fn = fn
				ast.Inspect(fn.Body, f.visit)
			}
		}
		all = append(all, f.found...)
	}
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(hash(seed+a.ID), hash(seed+b.ID)) })
	return all, nil
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if said.MatchString(f.text(n.Fun)) {
			return false
		}
		f.call(n)
	case *ast.SwitchStmt, *ast.SelectStmt:
		f.branches(n)
	case *ast.ArrayType: // its length is a constant of the layout
		return false
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.put("guard removed", n.Cond.Pos(), n.Cond.End(), "false && ("+f.text(n.Cond)+")")
		if _, compares := n.Cond.(*ast.BinaryExpr); !compares {
			f.put("condition negated", n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")")
		}
	case *ast.AssignStmt:
		f.assign(n)
	case *ast.IncDecStmt:
		f.put("statement removed", n.Pos(), n.End(), "")
	case *ast.ExprStmt, *ast.DeferStmt, *ast.SendStmt:
		f.remove(n)
	case *ast.ReturnStmt:
		f.returns(n)
	case *ast.BranchStmt:
		if n.Label == nil && (n.Tok == token.BREAK || n.Tok == token.CONTINUE) {
			other := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]
			f.put("break and continue", n.Pos(), n.End(), other)
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 63); err == nil && n.Kind == token.INT {
			f.put("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			f.put("truth", n.Pos(), n.End(), other)
		}
	}
	return true
}

// branches notes what is asked for by a switch.
func (f *finder) branches(n ast.Node) {
	switch n := n.(type) {
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			for _, asked := range c.(*ast.CaseClause).List {
				f.cases = append(f.cases, [2]ast.Node{asked, n})
			}
		}
	case *ast.SelectStmt:
		for _, c := range n.Body.List {
			if asked := c.(*ast.CommClause).Comm; asked != nil {
				f.cases = append(f.cases, [2]ast.Node{asked, n})
			}
		}
	}
}

func (f *finder) call(n *ast.CallExpr) {
	name := n.Fun
	if s, ok := name.(*ast.SelectorExpr); ok {
		name = s.Sel
	}
	if id, ok := name.(*ast.Ident); ok && swapped()[id.Name] != "" {
		f.put("call", id.Pos(), id.End(), swapped()[id.Name])
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	end := n.OpPos + token.Pos(len(n.Op.String()))
	switch n.Op { //nolint:exhaustive // what has no opposite is left
	case token.LAND, token.LOR:
		f.put("and, or", n.OpPos, end, map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[n.Op])
		f.put("half a condition", n.Pos(), n.End(), f.text(n.X))
		f.put("half a condition", n.Pos(), n.End(), f.text(n.Y))
		return
	}
	kinds := []string{"condition negated", "boundary"}
	for i, to := range opposites()[n.Op] {
		if n.Op.Precedence() != token.EQL.Precedence() {
			kinds[i] = "arithmetic"
		}
		f.put(kinds[i], n.OpPos, end, to)
	}
}

func (f *finder) assign(n *ast.AssignStmt) {
	end := n.TokPos + token.Pos(len(n.Tok.String()))
	for _, to := range opposites()[n.Tok] {
		f.put("arithmetic", n.TokPos, end, to)
	}
	if n.Tok != token.DEFINE && f.text(n.Lhs[0]) != "_" {
		f.put("statement removed", n.Pos(), n.End(), "")
	}
}

// remove takes a statement away, unless it says something to people only.
func (f *finder) remove(n ast.Node) {
	var call ast.Expr
	switch n := n.(type) {
	case *ast.ExprStmt:
		call = n.X
	case *ast.DeferStmt:
		call = n.Call
	}
	if c, ok := call.(*ast.CallExpr); ok && said.MatchString(f.text(c.Fun)) {
		return
	}
	if len(f.text(n)) < 400 { // larger ones are functions in place, whose parts are tried
		f.put("statement removed", n.Pos(), n.End(), "")
	}
}

// returns drops an error that is returned.
func (f *finder) returns(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	text := f.text(last)
	if text == "err" || strings.HasPrefix(text, "fmt.Errorf(") || strings.HasPrefix(text, "Err") || strings.HasPrefix(text, "errors.") {
		f.put("error dropped", last.Pos(), last.End(), "nil")
	}
}

func (f *finder) put(operator string, from, to token.Pos, text string) {
	start, end := f.fset.Position(from), f.fset.Position(to)
	m := mutant{
		Target: f.target, File: f.file, Line: start.Line, Func: f.name(), Operator: operator,
		From: string(f.src[start.Offset:end.Offset]), To: text, Text: hash(f.text(f.fn))[:8],
		start: start.Offset, end: end.Offset, reach: start.Line,
	}
	for _, c := range f.cases {
		if c[0].Pos() <= from && to <= c[0].End() {
			m.reach = f.fset.Position(c[1].Pos()).Line
		}
	}
	// Parentheses keep what stands around a replaced expression from binding to a part of it.
	if operator == "half a condition" {
		m.To = "(" + text + ")"
	}
	id := strings.Join([]string{m.File, m.Func, operator, m.From, m.To}, "\x00")
	f.seen[id]++
	m.ID = hash(id + strconv.Itoa(f.seen[id]))[:8]
	f.found = append(f.found, m)
}

// name is the function with its receiver's type.
func (f *finder) name() string {
	if f.fn.Recv == nil {
		return f.fn.Name.Name
	}
	return strings.TrimPrefix(f.text(f.fn.Recv.List[0].Type), "*") + "." + f.fn.Name.Name
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
