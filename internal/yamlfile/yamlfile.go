// Package yamlfile reads the files that operators write by hand, and says of
// each fault in which line and column it is. What to expect in a file is its
// reader's to say; what no such file may hold is refused here: a second
// document, deep nesting, a key that comes twice, anchors, aliases and merges.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// ParseError is one thing that is wrong with a file, and where. Line and column count
// from 1; both are 0 for a fault of the file as a whole.
type ParseError struct {
	File         string
	Line, Column int
	Message      string
}

// Error gives the fault as file:line:column: message.
func (f *ParseError) Error() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	return where + ": " + f.Message
}

// Reader reads one file and gathers what is wrong with it. It is for one
// goroutine.
type Reader struct {
	// File names the file in faults.
	File   string
	faults []error
}

// Load gives the content of the one document, which may nest so deep. It is nil
// after a fault, and with empty when the file says nothing at all.
func (r *Reader) Load(data []byte, depth int) (root *yaml.Node, empty bool) {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(depth))))
	if err != nil {
		r.FaultAt(0, 0, err.Error())
		return nil, false
	}
	var doc, more yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return nil, true
	case err != nil:
		r.syntax(err)
		return nil, false
	}
	switch err := loader.Load(&more); {
	case err == nil:
		r.Fault(&more, "a second document; there must be one")
	case !errors.Is(err, io.EOF):
		r.syntax(err)
	}
	if len(r.faults) > 0 {
		return nil, false
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, true
	}
	return doc.Content[0], false
}

func (r *Reader) syntax(err error) {
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		r.FaultAt(max(le.Mark.Line, 1), max(le.Mark.Column, 1), "not YAML: "+le.Message)
		return
	}
	r.FaultAt(1, 1, "not YAML: "+err.Error())
}

// Mapping calls each for every key of a mapping, once a key. Path names the
// mapping in faults.
func (r *Reader) Mapping(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.Fault(n, "%s: not a mapping", path)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			r.Fault(key, "%s: a key must be a plain word", path)
		case seen[key.Value]:
			r.Fault(key, "%s: %s is given twice", path, Quote(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "" || key.Anchor != "":
			r.Fault(value, "%s: anchors and aliases are not taken", path)
		default:
			seen[key.Value] = true
			each(key, value)
		}
	}
}

// Fault notes what is wrong at a node.
func (r *Reader) Fault(at *yaml.Node, format string, args ...any) {
	r.FaultAt(max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...))
}

// FaultAt notes what is wrong at a place.
func (r *Reader) FaultAt(line, column int, message string) {
	r.faults = append(r.faults, &ParseError{File: r.File, Line: line, Column: column, Message: message})
}

// Faults counts what is noted.
func (r *Reader) Faults() int { return len(r.faults) }

// Err joins a *ParseError for each fault, in the order in which they were noted.
func (r *Reader) Err() error { return errors.Join(r.faults...) }

// Clip keeps a message about a long text readable.
func Clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Quote is Clip in quotes, as a string of Go.
func Quote(s string) string { return fmt.Sprintf("%q", Clip(s)) }
