package review

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var tokenKind = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}

// serializer is what the API server reads and writes protobuf with.
func serializer(t *testing.T) *protobuf.Serializer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := authenticationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := authorizationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return protobuf.NewSerializer(scheme, scheme)
}

func TestAReviewIsEncodedAsTheAPIServerReadsIt(t *testing.T) {
	body, err := encode(tokenKind, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t", Audiences: []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	object, kind, err := serializer(t).Decode(body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	review, ok := object.(*authenticationv1.TokenReview)
	if !ok || kind.GroupVersion().String() != tokenKind.APIVersion || review.Spec.Token != "t" || strings.Join(review.Spec.Audiences, " ") != "a b" {
		t.Errorf("%v: %+v", kind, object)
	}
}

func TestAReviewOfTheAPIServerIsRead(t *testing.T) {
	sent := &authenticationv1.TokenReview{TypeMeta: tokenKind, Status: authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{"a"},
		User: authenticationv1.UserInfo{Username: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v", "w"}}},
	}}
	var written strings.Builder
	if err := serializer(t).Encode(sent, &written); err != nil {
		t.Fatal(err)
	}
	var got authenticationv1.TokenReview
	if err := decode([]byte(written.String()), tokenKind, &got); err != nil {
		t.Fatal(err)
	}
	u := got.Status.User
	if !got.Status.Authenticated || u.Username != "u" || u.UID != "1" || strings.Join(u.Groups, " ") != "g" || strings.Join(u.Extra["k"], " ") != "v w" {
		t.Errorf("got %+v", got.Status)
	}
}

func TestWhatIsNoReviewIsNoAnswer(t *testing.T) {
	whole, err := encode(tokenKind, &authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{Authenticated: true}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := encode(metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, &authorizationv1.SubjectAccessReview{})
	if err != nil {
		t.Fatal(err)
	}
	status, err := encode(metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, &authenticationv1.TokenReview{})
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"empty": nil, "the magic alone": magic, "cut off": whole[:len(whole)-1], "a review of another kind": other, "a status": status,
		"an object without its envelope": append([]byte("k8s\x00"), whole[4+10:]...),
		"protobuf without the magic":     whole[4:],
		"JSON of another kind":           []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true}}`),
		"JSON without a kind":            []byte(`{"status":{"authenticated":true}}`),
		"two objects in JSON":            []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview"}{}`),
		"a page of a proxy":              []byte(`<html>`),
	} {
		t.Run(name, func(t *testing.T) {
			var got authenticationv1.TokenReview
			err := decode(raw, tokenKind, &got)
			if err == nil {
				t.Fatalf("read as %+v", got)
			}
			if strings.Contains(err.Error(), "html") {
				t.Errorf("%v shows the answer", err)
			}
		})
	}
}
