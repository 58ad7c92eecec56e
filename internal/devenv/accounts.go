package devenv

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnsureServiceAccount makes a ServiceAccount, and its namespace, unless they exist. Pods need one named `default` in their
// namespace, which no controller makes here.
func (a *APIServer) EnsureServiceAccount(ctx context.Context, namespace, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := a.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = a.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Token asks the API server for a token of an existing ServiceAccount that is good for life (at least ten minutes, the API
// server's own bound) and for the audiences, or for the API server's own when none is given.
func (a *APIServer) Token(ctx context.Context, namespace, name string, life time.Duration, audiences ...string) (string, error) {
	seconds := int64(life / time.Second)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}
	answer, err := a.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}
