package calls

import (
	"net/http"
	"net/url"
	"strconv"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
)

// CheckQuery refuses a query that cannot be read, and one that gives a
// parameter of the operation twice: which of the two counts, readers along the
// way might not agree on. Other parameters do not matter.
func CheckQuery(op api.Operation, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.BadRequest, "the query is malformed").WithHint("send name=value pairs, percent-encoded, with & between them")
	}
	for _, p := range op.QueryParams {
		if len(query[p.Name]) > 1 {
			return problem.Newf(problem.BadRequest, "%s is given %d times", p.Name, len(query[p.Name])).WithHint("give it once")
		}
	}
	return nil
}

// Quoted gives what a caller sent in a form and length that fit into an answer
// and an audit line.
func Quoted(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
