package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/explain"
	"hangar.io/glidepath/authz/oidc"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/terminal"
)

type explainCommand struct {
	Call  []string          `arg:"" help:"The call: a method and a path with its query, or the name of an operation."`
	App   string            `help:"App that the operation is called about."`
	Param map[string]string `placeholder:"NAME=VALUE" help:"A name in the operation's path. Those that are left out are made up."`

	TokenFile      string   `xor:"who" placeholder:"FILE" help:"File of the caller's token; - reads standard input."`
	TokenEnv       string   `xor:"who" placeholder:"NAME" help:"Environment variable of the caller's token."`
	ServiceAccount string   `xor:"who" placeholder:"NAMESPACE/NAME" help:"Ask the API server for a token of this ServiceAccount."`
	As             string   `xor:"who" placeholder:"USER" help:"Assume this caller, without a token."`
	AsGroup        []string `placeholder:"GROUP" help:"Group of the assumed caller."`
	AsUID          string   `name:"as-uid" placeholder:"UID" help:"Uid of the assumed caller."`
	OnBehalfOf     string   `placeholder:"PERSON" help:"Person that the call names."`
	Proxied        bool     `help:"The token comes in X-Glidepath-Authorization."`

	TokenAudiences []string      `env:"TOKEN_AUDIENCES" placeholder:"NAME" help:"As authz's setting."`
	Delegates      []string      `env:"DELEGATES" placeholder:"USER" help:"As authz's setting."`
	DenyList       string        `env:"DENY_LIST_FILE" placeholder:"FILE" help:"As authz's setting."`
	OIDC           oidc.Settings `embed:""`
	Kubeconfig     string        `env:"KUBECONFIG" placeholder:"FILE" help:"How to reach the API server. Empty means the pod's ServiceAccount."`
	Timeout        time.Duration `default:"30s" help:"How long all of it may take."`
	Output         string        `short:"o" enum:"text,json,yaml,review" default:"text" help:"text, json, yaml, or review: the questions alone, for kubectl create -f -."`

	stdin io.Reader // nil reads the process's own
}

// Run decides the call as authz would, and prints how.
func (c *explainCommand) Run(k *kong.Kong) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	q := explain.Question{OnBehalfOf: c.OnBehalfOf}
	err := c.OIDC.Validate()
	if err != nil {
		return err
	}
	if q.Method, q.Target, err = c.call(); err != nil {
		return err
	}
	cluster, err := kube.Config(kube.Options{Kubeconfig: c.Kubeconfig, UserAgent: "glidepath-explain"})
	if err != nil {
		return err
	}
	if q.Credential, err = c.credential(ctx, cluster); err != nil {
		return err
	}
	q.Credential.Proxied = c.Proxied
	report, err := explain.Explain(ctx, explain.Config{
		Cluster: cluster, Audiences: c.TokenAudiences, Delegates: c.Delegates, People: c.OIDC, DenyListFile: c.DenyList,
	}, q)
	if err != nil {
		return err
	}
	out, err := c.render(report)
	if err != nil {
		return err
	}
	_, err = k.Stdout.Write(out)
	return err
}

// call gives the method and the target of the call.
func (c *explainCommand) call() (method, target string, err error) {
	switch {
	case len(c.Call) == 2 && (c.App != "" || len(c.Param) > 0):
		return "", "", errors.New("--app and --param go with the name of an operation; a path says both")
	case len(c.Call) == 2:
		return strings.ToUpper(c.Call[0]), c.Call[1], nil
	case len(c.Call) > 2:
		return "", "", errors.New("one call at a time: METHOD PATH, or the name of an operation")
	}
	operations, err := operation.NewTable(api.Operations())
	if err != nil {
		return "", "", err
	}
	op, ok := operations.Lookup(c.Call[0])
	if !ok {
		return "", "", fmt.Errorf("%q is no operation, and no METHOD with a PATH behind it", c.Call[0])
	}
	target, err = op.Target(c.App, c.Param)
	return op.Method, target, err
}

// credential gives what the call is made with. A token is never an argument:
// arguments can be read by everybody on the machine.
func (c *explainCommand) credential(ctx context.Context, cluster *rest.Config) (explain.Credential, error) {
	if c.As == "" && (len(c.AsGroup) > 0 || c.AsUID != "") {
		return explain.Credential{}, errors.New("--as-group and --as-uid go with --as")
	}
	switch {
	case c.As != "":
		return explain.NewUser(c.As, c.AsUID, c.AsGroup)
	case c.ServiceAccount != "":
		return explain.NewAccountToken(ctx, cluster, c.ServiceAccount, c.TokenAudiences)
	case c.TokenEnv != "":
		value, ok := os.LookupEnv(c.TokenEnv)
		if !ok || value == "" {
			return explain.Credential{}, fmt.Errorf("the environment variable %s is not set", c.TokenEnv)
		}
		return explain.NewToken("of the environment variable "+c.TokenEnv, value), nil
	case c.TokenFile == "-":
		return readToken("of standard input", c.input())
	case c.TokenFile != "":
		f, err := os.Open(c.TokenFile)
		if err != nil {
			return explain.Credential{}, fmt.Errorf("reading the token: %w", err)
		}
		defer func() { _ = f.Close() }()
		return readToken("of the file "+c.TokenFile, f)
	}
	return explain.Credential{}, nil
}

func (c *explainCommand) input() io.Reader {
	if c.stdin != nil {
		return c.stdin
	}
	return os.Stdin
}

// maxTokenFile is more than a token may have, so that one which is too long is
// refused as authz refuses it.
const maxTokenFile = 2 * token.MaxBytes

func readToken(source string, r io.Reader) (explain.Credential, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxTokenFile))
	if err != nil {
		return explain.Credential{}, fmt.Errorf("reading the token: %w", err)
	}
	return explain.NewToken(source, string(raw)), nil
}

func (c *explainCommand) render(r *explain.Report) ([]byte, error) {
	switch c.Output {
	case "json":
		raw, err := json.MarshalIndent(r, "", "  ")
		return append(terminal.JSON(raw), '\n'), err
	case "yaml":
		return terminal.YAML(r)
	case "review":
		return r.Manifests()
	}
	text, err := r.Text()
	return []byte(text), err
}
