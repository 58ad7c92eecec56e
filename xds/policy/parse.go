package policy

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/filewatch"
	"hangar.io/glidepath/internal/yamlfile"
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

// ParseError is one thing that is wrong with a policy, and where.
type ParseError = yamlfile.ParseError

// Parse reads a policy for these operations; file names it in errors. It
// refuses what it does not know, and an empty file: a writer that truncates it
// first must not lift every limit. The error joins one *ParseError for each
// fault, in the order of the file. The zero Policy comes with every error.
func Parse(file string, data []byte, operations []api.Operation) (Policy, error) {
	p := newParser(file, operations)
	if len(data) > MaxBytes {
		p.FaultAt(0, 0, fmt.Sprintf("the policy is larger than %d bytes", MaxBytes))
		return Policy{}, p.Err()
	}
	var pol Policy
	if root, empty := p.Load(data, maxDepth); empty {
		p.FaultAt(1, 1, "empty: a policy that sets nothing has a version")
	} else if root != nil {
		pol = p.policy(root)
	}
	if err := p.Err(); err != nil {
		return Policy{}, err
	}
	return pol, nil
}

// parser walks the document and gathers what is wrong with it.
type parser struct {
	yamlfile.Reader

	operations map[string]api.Operation
	backends   map[string]bool
}

func newParser(file string, operations []api.Operation) *parser {
	p := &parser{Reader: yamlfile.Reader{File: file}, operations: map[string]api.Operation{}, backends: map[string]bool{}}
	for _, op := range operations {
		p.operations[op.ID] = op
		p.backends[op.Backend] = true
	}
	return p
}

func (p *parser) policy(root *yaml.Node) Policy {
	pol := Policy{backends: map[string]Settings{}, operations: map[string]Settings{}}
	versioned := false
	p.Mapping(root, "the policy", func(key, value *yaml.Node) {
		switch key.Value {
		case "version":
			versioned = true
			if value.Kind != yaml.ScalarNode || value.Value != version {
				p.Fault(value, "version: only %s is known", version)
			}
		case "defaults":
			pol.defaults = p.settings(value, "defaults", nil)
		case "backends":
			p.named(value, "backends", pol.backends, func(at *yaml.Node, name string) *api.Operation {
				if !p.backends[name] {
					p.Fault(at, "backends: there is no backend %s", yamlfile.Quote(name))
				}
				return nil
			})
		case "operations":
			p.named(value, "operations", pol.operations, func(at *yaml.Node, name string) *api.Operation {
				op, ok := p.operations[name]
				if !ok {
					p.Fault(at, "operations: there is no operation %s", yamlfile.Quote(name))
					return nil
				}
				return &op
			})
		default:
			p.Fault(key, "unknown key %s; known are version, defaults, backends, operations", yamlfile.Quote(key.Value))
		}
	})
	if !versioned && root.Kind == yaml.MappingNode {
		p.Fault(root, "version: missing; it must be %s", version)
	}
	return pol
}

// named reads settings by name; known says what a name stands for.
func (p *parser) named(n *yaml.Node, path string, into map[string]Settings, known func(at *yaml.Node, name string) *api.Operation) {
	p.Mapping(n, path, func(key, value *yaml.Node) {
		op := known(key, key.Value)
		into[key.Value] = p.settings(value, path+"."+yamlfile.Clip(key.Value), op)
	})
}

func (p *parser) settings(n *yaml.Node, path string, op *api.Operation) Settings {
	var out Settings
	var callers *yaml.Node
	p.Mapping(n, path, func(key, value *yaml.Node) {
		switch key.Value {
		case "timeout":
			out.Timeout = p.timeout(value, path+".timeout")
			if op != nil && op.Stream {
				p.Fault(key, "%s.timeout: %s is a stream, which has none", path, op.ID)
			}
		case "rateLimit":
			out.RateLimit = p.rateLimit(value, path, ".rateLimit")
		case "callerRateLimit":
			out.CallerRateLimit = p.rateLimit(value, path, ".callerRateLimit")
			callers = key
		default:
			p.Fault(key, "%s: unknown key %s; known are timeout, rateLimit, callerRateLimit", path, yamlfile.Quote(key.Value))
		}
	})
	if each, all := out.RateLimit.Limit, out.CallerRateLimit.Limit; !each.IsZero() && !all.IsZero() &&
		(all.Interval() > each.Interval() || all.Burst < each.Burst) {
		p.Fault(callers, "%s.callerRateLimit: allows a caller less than rateLimit allows each of its people", path)
	}
	return out
}

func (p *parser) timeout(n *yaml.Node, path string) time.Duration {
	return p.duration(n, path, MinTimeout, MaxTimeout)
}

func (p *parser) duration(n *yaml.Node, path string, least, most time.Duration) time.Duration {
	if n.Kind != yaml.ScalarNode {
		p.Fault(n, "%s: not a duration such as 10s", path)
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		p.Fault(n, "%s: %s is not a duration such as 10s", path, yamlfile.Quote(n.Value))
		return 0
	}
	if d < least || d > most {
		p.Fault(n, "%s: %s is not between %s and %s", path, yamlfile.Quote(n.Value), least, most)
		return 0
	}
	return d
}
