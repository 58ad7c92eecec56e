package denylist

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"hangar.io/glidepath/internal/filewatch"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/yamlfile"
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

// ParseError is one thing that is wrong with a file, and where.
type ParseError = yamlfile.ParseError

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
	p := &parser{Reader: yamlfile.Reader{File: file}, list: &List{users: map[string]Entry{}, people: map[string]Entry{}, groups: map[string]Entry{}, epoch: epochOf(data)}}
	if len(data) > MaxBytes {
		p.FaultAt(0, 0, fmt.Sprintf("larger than %d bytes", MaxBytes))
	} else if root, empty := p.Load(data, maxDepth); empty {
		p.FaultAt(1, 1, "empty: a list that denies nobody has a version")
	} else if root != nil {
		p.root(root)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.list, nil
}

// parser walks the document and gathers what is wrong with it.
type parser struct {
	yamlfile.Reader

	list *List
}

func (p *parser) root(n *yaml.Node) {
	versioned := false
	p.Mapping(n, "the list", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			versioned = true
			if value.Kind != yaml.ScalarNode || value.Value != version {
				p.Fault(value, "version: only %s is known", version)
			}
		case "users":
			p.entries(value, User, p.list.users)
		case "people":
			p.entries(value, Person, p.list.people)
		case "groups":
			p.entries(value, Group, p.list.groups)
		default:
			p.Fault(key, "unknown key %s; known are version, users, people, groups", yamlfile.Quote(key.Value))
		}
	})
	if !versioned && n.Kind == yaml.MappingNode {
		p.Fault(n, "version: missing; it must be %s", version)
	}
}

// entries reads those of one kind: names, or mappings with more.
func (p *parser) entries(n *yaml.Node, kind Kind, into map[string]Entry) {
	if n.Kind != yaml.SequenceNode {
		p.Fault(n, "%ss: not a list", kind)
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
			key = identity.FoldPerson(key)
		}
		if _, twice := into[key]; twice && e.Name != "" {
			p.Fault(at, "%s is named twice", yamlfile.Quote(e.Name))
		}
		into[key] = e
	}
}

func (p *parser) entry(n *yaml.Node, e *Entry) bool {
	before := p.Faults()
	named := false
	p.Mapping(n, "an entry", func(key, value *yaml.Node) {
		switch key.Value {
		case "name":
			named = true
			e.Name = p.name(value)
		case "reason":
			if value.Kind != yaml.ScalarNode || len(value.Value) > maxName {
				p.Fault(value, "reason: not a short text")
			}
			e.Reason = value.Value
		case "until":
			at, err := time.Parse(time.RFC3339, value.Value)
			if value.Kind != yaml.ScalarNode || err != nil {
				p.Fault(value, "until: not a time such as 2026-12-01T00:00:00Z")
			}
			e.Until = at
		default:
			p.Fault(key, "unknown key %s; known are name, reason, until", yamlfile.Quote(key.Value))
		}
	})
	if !named && n.Kind == yaml.MappingNode {
		p.Fault(n, "name: missing")
	}
	return p.Faults() == before
}

// name reads a name. One that can be nobody's is a slip that would deny nobody.
func (p *parser) name(n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		p.Fault(n, "not a name")
	case n.Value == "" || n.Value != strings.TrimSpace(n.Value) || len(n.Value) > maxName || strings.ContainsAny(n.Value, "\n\r\t*"):
		p.Fault(n, "%s is nobody's name: it is empty, too long, or has spaces around it, a line break or a *", yamlfile.Quote(n.Value))
	}
	return n.Value
}
