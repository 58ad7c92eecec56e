package fleet

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Caller is a ServiceAccount that a newcomer, or a test, calls the gateway as.
type Caller struct {
	// Name says what the caller may do: reader, app-reader, operator, releaser, delegate or stranger.
	Name string
	// Namespace and ServiceAccount are where its identity lives.
	Namespace, ServiceAccount string
	// EnvVar is the variable of the demo environment that holds its token.
	EnvVar string
}

// Username is the name that a TokenReview gives the caller.
func (c Caller) Username() string {
	return "system:serviceaccount:" + c.Namespace + ":" + c.ServiceAccount
}

// Names of the sample callers.
const (
	CallerReader    = "reader"
	CallerAppReader = "app-reader"
	CallerOperator  = "operator"
	CallerReleaser  = "releaser"
	CallerDelegate  = "delegate"
	CallerStranger  = "stranger"
)

// Callers returns the sample callers, in a fixed order. What each may do is written in the package documentation.
func Callers() []Caller {
	return []Caller{
		{Name: CallerReader, Namespace: DemoNamespace, ServiceAccount: CallerReader, EnvVar: "TOKEN_READER"},
		{Name: CallerAppReader, Namespace: DemoNamespace, ServiceAccount: CallerAppReader, EnvVar: "TOKEN_APP_READER"},
		{Name: CallerOperator, Namespace: DemoNamespace, ServiceAccount: CallerOperator, EnvVar: "TOKEN_OPERATOR"},
		{Name: CallerReleaser, Namespace: DemoNamespace, ServiceAccount: CallerReleaser, EnvVar: "TOKEN_RELEASER"},
		{Name: CallerDelegate, Namespace: DemoNamespace, ServiceAccount: CallerDelegate, EnvVar: "TOKEN_DELEGATE"},
		{Name: CallerStranger, Namespace: DemoNamespace, ServiceAccount: CallerStranger, EnvVar: "TOKEN_STRANGER"},
	}
}

// LookupCaller finds a sample caller by its name.
func LookupCaller(name string) (Caller, bool) {
	for _, c := range Callers() {
		if c.Name == name {
			return c, true
		}
	}
	return Caller{}, false
}

// ServiceIdentity is the identity that one of the gateway's own processes runs as (AuthzServiceAccount,
// LivehubServiceAccount). Token makes credentials for it as for any caller; it has no EnvVar.
func ServiceIdentity(serviceAccount string) Caller {
	return Caller{Name: serviceAccount, Namespace: PlatformNamespace, ServiceAccount: serviceAccount}
}

// Token asks the API server for a token of the caller's ServiceAccount that lives for ttl (at least ten minutes, the
// API server's own floor). Without audiences the token is for the API server itself. The token is a secret: it must
// never reach a log.
func Token(ctx context.Context, cfg *rest.Config, caller Caller, ttl time.Duration, audiences ...string) (string, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("token for %s: %w", caller.Username(), err)
	}
	seconds := int64(ttl / time.Second)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}
	answer, err := client.CoreV1().ServiceAccounts(caller.Namespace).
		CreateToken(ctx, caller.ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token for %s: %w", caller.Username(), err)
	}
	return answer.Status.Token, nil
}
