package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/problem"
)

// missingAge is how long it is known that something is not archived: not so long
// that who waits for it minds, and long enough that who asks for what there is not
// has the archive asked a few times a minute at most.
const missingAge = 3 * time.Second

// refused stands for a document that there is not, and says why.
var refused = kind{contentType: "application/x-glidepath-refused", maxBytes: 16 << 10}

// refusal gives the document that is kept in place of one which cannot be had, and
// for how long. It is none for an error that the next read may be without.
func refusal(err error) (doc *document, age time.Duration) {
	p := problem.From(explain(err))
	switch {
	case errors.Is(err, answer.ErrTooLarge):
		age = listAge
	case p.Rule.ID == problem.NotFound.ID, p.Rule.ID == problem.LogNotFound.ID:
		age = missingAge
	default:
		return nil, 0
	}
	doc, err = refused.written(func(w io.Writer) error { return json.NewEncoder(w).Encode(p.Body("")) })
	if err != nil {
		return nil, 0 // it is answered and not kept
	}
	return doc, age
}

// refusalIn gives the error that a document stands for, if it stands for one.
func refusalIn(doc *document) error {
	if doc.ContentType() != refused.contentType {
		return nil
	}
	body, err := doc.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	var b problem.Body
	if err := json.NewDecoder(body).Decode(&b); err != nil {
		return fmt.Errorf("reading a refusal: %w", err)
	}
	rule := problem.SourceFailed
	for _, r := range []problem.Rule{problem.NotFound, problem.LogNotFound} {
		if r.ID == b.Rule {
			rule = r
		}
	}
	return problem.New(rule, b.Message).WithHint(b.Hint)
}
