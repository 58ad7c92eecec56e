package denylist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"hangar.io/glidepath/internal/filewatch"
)

// MaxBytes bounds a file.
const MaxBytes = 256 << 10

const (
	// maxDepth bounds how deep a file may nest; the deepest that means anything
	// is three.
	maxDepth = 6
	version  = "1"
	maxName  = 1024
)

// ParseError is one thing that is wrong with a file, and where. Line and column
// count from 1; both are 0 for a fault of the file as a whole.
type ParseError struct {
	File         string
	Line, Column int
	Message      string
}

// Error gives the fault as file:line:column: message.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Read reads the list of a file, which is not followed. Its errors are those of
// reading and of Parse.
func Read(file string) (*List, error) {
	data, err := filewatch.ReadFile(file, MaxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// Parse reads a list; file names it in errors. It refuses what it does not
// know, an empty file included: one that says that nobody is denied says so
// with a version. The error joins a *ParseError for each fault.
func Parse(file string, data []byte) (*List, error) {
	p := &parser{file: file, list: &List{users: map[string]Entry{}, people: map[string]Entry{}, groups: map[string]Entry{}, epoch: epochOf(data)}}
	if len(data) > MaxBytes {
		p.faultAt(0, 0, fmt.Sprintf("larger than %d bytes", MaxBytes))
	} else if root := p.load(data); root != nil {
		p.root(root)
	}
	if err := errors.Join(p.faults...); err != nil {
		return nil, err
	}
	return p.list, nil
}

// parser walks the document and gathers what is wrong with it.
type parser struct {
	file   string
	list   *List
	faults []error
}

func (p *parser) faultAt(line, column int, message string) {
	p.faults = append(p.faults, &ParseError{File: p.file, Line: line, Column: column, Message: message})
}

func (p *parser) fault(at *yaml.Node, format string, args ...any) {
	p.faultAt(max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...))
}

func (p *parser) syntax(err error) {
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.faultAt(max(le.Mark.Line, 1), max(le.Mark.Column, 1), "not YAML: "+le.Message)
		return
	}
	p.faultAt(1, 1, "not YAML: "+err.Error())
}

// load gives the content of the one document, or nil after a fault.
func (p *parser) load(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		p.faultAt(0, 0, err.Error())
		return nil
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		p.faultAt(1, 1, "empty: a list that denies nobody has a version")
		return nil
	} else if err != nil {
		p.syntax(err)
		return nil
	}
	if err := loader.Load(&more); err == nil {
		p.fault(&more, "a second document; there must be one")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
	}
	if len(p.faults) > 0 || doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

func (p *parser) root(n *yaml.Node) {
	versioned := false
	p.mapping(n, "the list", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			versioned = true
			if value.Kind != yaml.ScalarNode || value.Value != version {
				p.fault(value, "version: only %s is known", version)
			}
		case "users":
			p.entries(value, User, p.list.users)
		case "people":
			p.entries(value, Person, p.list.people)
		case "groups":
			p.entries(value, Group, p.list.groups)
		default:
			p.fault(key, "unknown key %s; known are version, users, people, groups", quote(key.Value))
		}
	})
	if !versioned && n.Kind == yaml.MappingNode {
		p.fault(n, "version: missing; it must be %s", version)
	}
}

// entries reads those of one kind: names, or mappings with more.
func (p *parser) entries(n *yaml.Node, kind Kind, into map[string]Entry) {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, "%ss: not a list", kind)
		return
	}
	for _, item := range n.Content {
		e := Entry{Kind: kind}
		at := item
		if item.Kind == yaml.ScalarNode && item.Anchor == "" {
			e.Name = p.name(item)
		} else if !p.entry(item, &e) {
			continue
		}
		key := e.Name
		if kind == Person {
			key = fold(key)
		}
		if _, twice := into[key]; twice && e.Name != "" {
			p.fault(at, "%s is named twice", quote(e.Name))
		}
		into[key] = e
	}
}

func (p *parser) entry(n *yaml.Node, e *Entry) bool {
	before := len(p.faults)
	named := false
	p.mapping(n, "an entry", func(key, value *yaml.Node) {
		switch key.Value {
		case "name":
			named = true
			e.Name = p.name(value)
		case "reason":
			if value.Kind != yaml.ScalarNode || len(value.Value) > maxName {
				p.fault(value, "reason: not a short text")
			}
			e.Reason = value.Value
		case "until":
			at, err := time.Parse(time.RFC3339, value.Value)
			if value.Kind != yaml.ScalarNode || err != nil {
				p.fault(value, "until: not a time such as 2026-12-01T00:00:00Z")
			}
			e.Until = at
		default:
			p.fault(key, "unknown key %s; known are name, reason, until", quote(key.Value))
		}
	})
	if !named && n.Kind == yaml.MappingNode {
		p.fault(n, "name: missing")
	}
	return len(p.faults) == before
}

// name reads a name. One that can be nobody's is a slip that would deny nobody.
func (p *parser) name(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		p.fault(n, "not a name")
	case n.Value == "" || n.Value != strings.TrimSpace(n.Value) || len(n.Value) > maxName || strings.ContainsAny(n.Value, "\n\r\t*"):
		p.fault(n, "%s is nobody's name: it is empty, too long, or has spaces around it, a line break or a *", quote(n.Value))
	}
	return n.Value
}

// mapping calls each for every key of a mapping, once a key.
func (p *parser) mapping(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s: not a mapping", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			p.fault(key, "a key must be a plain word")
		case seen[key.Value]:
			p.fault(key, "%s is given twice", quote(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "" || key.Anchor != "":
			p.fault(value, "anchors and aliases are not taken")
		default:
			seen[key.Value] = true
			each(key, value)
		}
	}
}

func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
