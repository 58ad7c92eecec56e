package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/filewatch"
)

// MaxBytes bounds a policy file.
const MaxBytes = 256 << 10

// Watch begins to watch a policy file.
func Watch(file string) (*filewatch.Watcher, error) { return filewatch.Watch(file, MaxBytes) }

// ReadFile reads a policy, at most one byte more than it may have.
func ReadFile(file string) ([]byte, error) { return filewatch.ReadFile(file, MaxBytes) }

// maxDepth bounds how deep a policy may nest; the deepest that means anything
// is five.
const maxDepth = 8

// version is the only version of the file's shape.
const version = "1"

// ParseError is one thing that is wrong with a policy, and where. Line and column
// count from 1; both are 0 for a fault of the file as a whole.
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

// Parse reads a policy for these operations; file names it in errors. It
// refuses what it does not know: the error joins one *ParseError for each fault, in
// the order of the file. The zero Policy comes with every error.
func Parse(file string, data []byte, operations []api.Operation) (Policy, error) {
	p := newParser(file, operations)
	if len(data) > MaxBytes {
		p.faultAt(0, 0, fmt.Sprintf("the policy is larger than %d bytes", MaxBytes))
		return Policy{}, errors.Join(p.faults...)
	}
	var pol Policy
	if root := p.load(data); root != nil {
		pol = p.policy(root)
	}
	if len(p.faults) > 0 {
		return Policy{}, errors.Join(p.faults...)
	}
	return pol, nil
}

// load gives the content of the one document, or nil when there is none to
// read on with: a file that says nothing at all is a policy too.
func (p *parser) load(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithV4Defaults(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		p.faultAt(0, 0, err.Error())
		return nil
	}
	var doc, more yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		p.syntax(err)
		return nil
	}
	switch err := loader.Load(&more); {
	case err == nil:
		p.fault(&more, "a second document; there must be one")
	case !errors.Is(err, io.EOF):
		p.syntax(err)
	}
	if len(p.faults) > 0 || doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

func (p *parser) syntax(err error) {
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		p.faultAt(max(le.Mark.Line, 1), max(le.Mark.Column, 1), "not YAML: "+le.Message)
		return
	}
	p.faultAt(1, 1, "not YAML: "+err.Error())
}

// parser walks the document and gathers what is wrong with it.
type parser struct {
	file       string
	operations map[string]api.Operation
	backends   map[string]bool
	faults     []error
}

func newParser(file string, operations []api.Operation) *parser {
	p := &parser{file: file, operations: map[string]api.Operation{}, backends: map[string]bool{}}
	for _, op := range operations {
		p.operations[op.ID] = op
		p.backends[op.Backend] = true
	}
	return p
}

func (p *parser) fault(at *yaml.Node, format string, args ...any) {
	p.faultAt(max(at.Line, 1), max(at.Column, 1), fmt.Sprintf(format, args...))
}

func (p *parser) faultAt(line, column int, message string) {
	p.faults = append(p.faults, &ParseError{File: p.file, Line: line, Column: column, Message: message})
}

func (p *parser) policy(root *yaml.Node) Policy {
	pol := Policy{backends: map[string]Settings{}, operations: map[string]Settings{}}
	versioned := false
	p.mapping(root, "the policy", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			versioned = true
			if value.Kind != yaml.ScalarNode || value.Value != version {
				p.fault(value, "version: only %s is known", version)
			}
		case "defaults":
			pol.defaults = p.settings(value, "defaults", nil)
		case "backends":
			p.named(value, "backends", pol.backends, func(at *yaml.Node, name string) *api.Operation {
				if !p.backends[name] {
					p.fault(at, "backends: there is no backend %s", quote(name))
				}
				return nil
			})
		case "operations":
			p.named(value, "operations", pol.operations, func(at *yaml.Node, name string) *api.Operation {
				op, ok := p.operations[name]
				if !ok {
					p.fault(at, "operations: there is no operation %s", quote(name))
					return nil
				}
				return &op
			})
		default:
			p.fault(key, "unknown key %s; known are version, defaults, backends, operations", quote(key.Value))
		}
	})
	if !versioned && root.Kind == yaml.MappingNode {
		p.fault(root, "version: missing; it must be %s", version)
	}
	return pol
}

// named reads settings by name; known says what a name stands for.
func (p *parser) named(n *yaml.Node, path string, into map[string]Settings, known func(at *yaml.Node, name string) *api.Operation) {
	p.mapping(n, path, func(key, value *yaml.Node) {
		op := known(key, key.Value)
		into[key.Value] = p.settings(value, path+"."+clip(key.Value), op)
	})
}

func (p *parser) settings(n *yaml.Node, path string, op *api.Operation) Settings {
	var out Settings
	var callers *yaml.Node
	p.mapping(n, path, func(key, value *yaml.Node) {
		switch key.Value {
		case "timeout":
			out.Timeout = p.timeout(value, path+".timeout")
			if op != nil && op.Stream {
				p.fault(key, "%s.timeout: %s is a stream, which has none", path, op.ID)
			}
		case "rateLimit":
			out.RateLimit = p.rateLimit(value, path, ".rateLimit")
		case "callerRateLimit":
			out.CallerRateLimit = p.rateLimit(value, path, ".callerRateLimit")
			callers = key
		default:
			p.fault(key, "%s: unknown key %s; known are timeout, rateLimit, callerRateLimit", path, quote(key.Value))
		}
	})
	if each, all := out.RateLimit.Limit, out.CallerRateLimit.Limit; !each.IsZero() && !all.IsZero() &&
		(all.Interval() > each.Interval() || all.Burst < each.Burst) {
		p.fault(callers, "%s.callerRateLimit: allows a caller less than rateLimit allows each of its people", path)
	}
	return out
}

func (p *parser) timeout(n *yaml.Node, path string) time.Duration {
	return p.duration(n, path, MinTimeout, MaxTimeout)
}

func (p *parser) duration(n *yaml.Node, path string, least, most time.Duration) time.Duration {
	if n.Kind != yaml.ScalarNode {
		p.fault(n, "%s: not a duration such as 10s", path)
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		p.fault(n, "%s: %s is not a duration such as 10s", path, quote(n.Value))
		return 0
	}
	if d < least || d > most {
		p.fault(n, "%s: %s is not between %s and %s", path, quote(n.Value), least, most)
		return 0
	}
	return d
}

// mapping calls each for every key of a mapping, once a key.
func (p *parser) mapping(n *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, "%s: not a mapping", path)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			p.fault(key, "%s: a key must be a plain word", path)
		case seen[key.Value]:
			p.fault(key, "%s: %s is given twice", path, quote(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "" || key.Anchor != "":
			p.fault(value, "%s: anchors and aliases are not taken", path)
		default:
			seen[key.Value] = true
			each(key, value)
		}
	}
}

// clip keeps a message about a long name readable.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func quote(s string) string { return fmt.Sprintf("%q", clip(s)) }
