package apifake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"
	magic        = "k8s\x00"
)

// message is an object that has a form in protobuf.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal(raw []byte) error
}

// decode reads a review as strictly as an API server asked to be strict.
func decode(w http.ResponseWriter, r *http.Request, into message, got *metav1.TypeMeta, want metav1.TypeMeta) bool {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3<<20))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
		return false
	}
	switch r.Header.Get("Content-Type") {
	case protobufType:
		*got, err = decodeProtobuf(raw, into)
	case jsonType:
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		err = d.Decode(into)
	default:
		refuse(w, http.StatusUnsupportedMediaType, "the body of the request was in an unknown format")
		return false
	}
	if err != nil || *got != want {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("the object provided is unrecognized: %v %v", err, *got))
		return false
	}
	return true
}

func decodeProtobuf(raw []byte, into message) (metav1.TypeMeta, error) {
	object, ok := strings.CutPrefix(string(raw), magic)
	if !ok {
		return metav1.TypeMeta{}, errors.New("it does not appear to be a protobuf message")
	}
	var u runtime.Unknown
	if err := u.Unmarshal([]byte(object)); err != nil {
		return metav1.TypeMeta{}, err
	}
	return metav1.TypeMeta{APIVersion: u.APIVersion, Kind: u.Kind}, into.Unmarshal(u.Raw)
}

// answerReview answers with a review in the first form that the request takes.
func answerReview(w http.ResponseWriter, r *http.Request, kind metav1.TypeMeta, review message) {
	if !strings.HasPrefix(r.Header.Get("Accept"), protobufType) {
		answer(w, http.StatusCreated, review)
		return
	}
	raw, err := review.Marshal()
	if err == nil {
		u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}, Raw: raw}
		raw, err = u.Marshal()
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", protobufType)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, magic+string(raw)) // a client that is gone needs no answer
}

// ReviewedToken gives the token of a TokenReview that came in protobuf, for
// what Fail calls. The body can be read again.
func ReviewedToken(r *http.Request) (string, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(strings.NewReader(string(raw)))
	var review authenticationv1.TokenReview
	_, err = decodeProtobuf(raw, &review)
	return review.Spec.Token, err
}
