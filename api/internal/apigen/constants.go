package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// constant is one constant of the API.
type constant struct{ name, value, doc string }

// constants are a block of them under one heading.
type constants struct {
	heading string
	list    []constant
}

// constantFiles are the files whose constants users write or read, and the
// heading for each block of a file, in order. Blocks without one are left out.
func constantFiles() []struct {
	file     string
	headings []string
} {
	return []struct {
		file     string
		headings []string
	}{
		{"states.go", []string{"Operational status", "Error types", "States of a host"}},
		{"conditions.go", []string{"Conditions and reasons of a host"}},
		{"annotations.go", []string{"Annotations", "Keys of other projects", "Label on Secrets", "Finalizers"}},
	}
}

// readConstants reads the blocks of constants in the Go files in dir.
func readConstants(dir string) ([]constants, error) {
	var groups []constants
	values := map[string]string{}
	for _, source := range constantFiles() {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, source.file), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		blocks := constBlocks(file)
		if len(blocks) < len(source.headings) {
			return nil, fmt.Errorf("%s: %d blocks of constants for %d headings", source.file, len(blocks), len(source.headings))
		}
		for i, heading := range source.headings {
			list, err := readBlock(blocks[i], values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", source.file, err)
			}
			groups = append(groups, constants{heading: heading, list: list})
		}
	}
	return groups, nil
}

func constBlocks(file *ast.File) []*ast.GenDecl {
	var blocks []*ast.GenDecl
	for _, decl := range file.Decls {
		if block, ok := decl.(*ast.GenDecl); ok && block.Tok == token.CONST {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// readBlock reads a block of constants, and adds them to values.
func readBlock(block *ast.GenDecl, values map[string]string) ([]constant, error) {
	var list []constant
	for _, spec := range block.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok || len(value.Names) != 1 || len(value.Values) != 1 {
			return nil, fmt.Errorf("line of constants that is not name = value: %v", spec)
		}
		name := value.Names[0].Name
		text, err := evaluate(value.Values[0], values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = text
		list = append(list, constant{name: name, value: text, doc: oneLine(value.Doc.Text())})
	}
	return list, nil
}

// evaluate works out a constant string: a literal, another constant, or a sum.
func evaluate(expression ast.Expr, values map[string]string) (string, error) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.Ident:
		value, ok := values[e.Name]
		if !ok {
			return "", fmt.Errorf("%s is not known yet", e.Name)
		}
		return value, nil
	case *ast.BinaryExpr:
		left, err := evaluate(e.X, values)
		if err != nil {
			return "", err
		}
		right, err := evaluate(e.Y, values)
		return left + right, err
	default:
		return "", fmt.Errorf("neither a string, a constant nor a sum: %T", e)
	}
}

func writeConstants(out *bytes.Buffer, groups []constants) {
	for _, group := range groups {
		fmt.Fprintf(out, "\n## %s\n\n| Value | Constant in Go | Meaning |\n| --- | --- | --- |\n", group.heading)
		for _, c := range group.list {
			fmt.Fprintf(out, "| %s | %s | %s |\n", plain([]byte(strconv.Quote(c.value))), c.name, cell(meaningOf(c)))
		}
	}
}

// meaningOf is a constant's doc comment without the constant's name, which
// means nothing to those who write YAML.
func meaningOf(c constant) string { return strings.TrimPrefix(c.doc, c.name+" ") }
