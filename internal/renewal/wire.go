package renewal

// Header carries the ticket from the edge to a backend. The edge strips it from
// what callers send.
const Header = "X-Glidepath-Renewal"

// The paths of authz's internal listener.
const (
	// RenewPath takes a POST of a Request and answers with Answers.
	RenewPath = "/internal/renewals"
	// EpochPath takes a GET and answers with an Epoch. With the query parameter
	// after it answers when the epoch is another one, at the latest after
	// HoldTime.
	EpochPath = "/internal/epoch"
)

// Request asks for the renewal of streams: 1 to MaxBatch of them.
type Request struct {
	// Tickets are those of the streams, as they came with their calls or with
	// the last renewal.
	Tickets []string `json:"tickets"`
}

// Answers are the answers to a Request, in the order of its tickets.
type Answers struct {
	Answers []Answer `json:"answers"`
}

// Answer is one of three: a granted renewal has an Identity and the next
// Ticket, a refused one a Reason and a Rule. One with neither Identity nor
// Reason is no verdict: nobody could tell now, and Rule says why.
type Answer struct {
	// Identity is signed as that of a call, for the same operation and about
	// the same app. A backend believes its signature, and not the connection.
	Identity string `json:"identity,omitempty"`
	// Ticket takes the place of the one that was shown.
	Ticket string `json:"ticket,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// Epoch stands for what is denied by list. When it changes, every stream is
// renewed at once.
type Epoch struct {
	Epoch string `json:"epoch"`
}
