package results

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	defaultPage = 50
	minPage     = 5
	maxPage     = 10_000
)

// What lists are ordered by.
const (
	orderCreated = "create_time"
	orderUpdated = "update_time"
	orderStart   = "summary.start_time"
	orderEnd     = "summary.end_time"
)

// listQuery is what a list is asked for.
type listQuery struct {
	filter, field string
	descending    bool
	size          int
	token         *pageToken
	only          *selection
	sendToken     bool
}

// parameter reads a parameter in either spelling.
func parameter(q url.Values, snake, camel string) (string, error) {
	name := snake
	if !q.Has(snake) && q.Has(camel) {
		name = camel
	}
	if len(q[name]) > 1 {
		return "", invalid("too many values for field " + strconv.Quote(name) + ": " + strings.Join(q[name], ", "))
	}
	return q.Get(name), nil
}

func readQuery(r *http.Request, t target) (l listQuery, err error) {
	q := r.URL.Query()
	texts := map[string]string{}
	for snake, camel := range map[string]string{
		"filter": "filter", "page_size": "pageSize", "page_token": "pageToken", "order_by": "orderBy", "fields": "fields",
	} {
		if texts[snake], err = parameter(q, snake, camel); err != nil {
			return l, err
		}
	}
	l.filter = texts["filter"]
	if l.size, err = pageSize(texts["page_size"], t.kind); err != nil {
		return l, err
	}
	if l.field, l.descending, err = orderBy(texts["order_by"], t.kind); err != nil {
		return l, err
	}
	if text := texts["page_token"]; text != "" {
		token, err := decodeToken(text)
		if err != nil {
			return l, err
		}
		if err := token.check(l.end(t, nil)); err != nil {
			return l, err
		}
		l.token = &token
	}
	list := kindRecords
	if t.kind == kindResults {
		list = kindResults
	}
	l.only, l.sendToken = selected(texts["fields"], list)
	return l, nil
}

func pageSize(text, kind string) (int, error) {
	if text == "" {
		return defaultPage, nil
	}
	size, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, invalid("parsing field \"page_size\": " + err.Error())
	}
	if size == 0 {
		return defaultPage, nil
	}
	if kind == kindLogs && size > 0 {
		return int(min(max(size, minPage), maxPage)), nil
	}
	if size < minPage || size > maxPage {
		return 0, invalid(fmt.Sprintf("invalid page size (%d): value must be greater than 5 and less than 10000", size))
	}
	return int(size), nil
}

func orderBy(text, kind string) (field string, descending bool, err error) {
	known := []string{orderCreated, orderUpdated}
	switch kind {
	case kindResults:
		known = []string{orderCreated, orderEnd, orderStart, orderUpdated}
	case kindLogs: // the older names
		text = strings.NewReplacer("created_time", orderCreated, "updated_time", orderUpdated).Replace(text)
	}
	format := "\nthe value must obey the format <" + strings.Join(known, "|") + "> [asc|desc]"
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return "", false, nil
	case len(words) > 2 || strings.Contains(text, ","), len(words) == 2 && words[1] != "asc" && words[1] != "desc":
		return "", false, invalid("invalid order by statement:" + format)
	case !slices.Contains(known, words[0]):
		return "", false, invalid(words[0] + ": field is unknown or cannot be used in the order by clause" + format)
	}
	return words[0], len(words) == 2 && words[1] == "desc", nil
}

// end is the token behind a row.
func (l listQuery) end(t target, r *row) pageToken {
	token := pageToken{parent: t.parent, filter: l.filter, field: l.field, descending: l.descending}
	if t.kind != kindResults {
		token.parent += "/results/" + t.result
	}
	if r != nil {
		token.uid, token.at = r.uid, r.key(l.field)
	}
	return token
}

// rows gives the rows that a list is of, in its order.
func (s *Server) rows(t target, l listQuery) []*row {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	tables, name := s.store.records, t.parent
	switch {
	case t.kind == kindResults:
		tables = s.store.results
	case t.result != anyName && t.parent != anyName:
		name += "/" + t.result
	}
	if tables[name] == nil {
		return nil
	}
	rows := tables[name].sorted(l.field)
	if !l.descending {
		return rows
	}
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	return rows
}

// behind gives the rows behind the one that a token names.
func (l listQuery) behind(rows []*row) []*row {
	if l.token == nil {
		return rows
	}
	at := sort.Search(len(rows), func(i int) bool {
		order := rows[i].key(l.field).Compare(l.token.at)
		if l.field == "" || order == 0 {
			order = strings.Compare(rows[i].uid, l.token.uid)
		}
		if l.descending {
			order = -order
		}
		return order > 0
	})
	return rows[at:]
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, t target, f Fault) error {
	if f.Loop != "" { // whatever page is asked for, it is the first
		q := r.URL.Query()
		q.Del("page_token")
		r.URL.RawQuery = q.Encode()
	}
	l, err := readQuery(r, t)
	if err != nil {
		return err
	}
	env := s.filters.records
	if t.kind == kindResults {
		env = s.filters.results
	}
	selects, err := compile(env, l.filter)
	if err != nil {
		return err
	}
	if f.Unfiltered {
		selects = func(*decoded) (bool, error) { return true, nil }
	}
	page, more, err := l.page(t, selects, l.behind(s.rows(t, l)))
	if errors.Is(err, errSQL) || f.Empty {
		page, more = nil, false // what a failed query is answered with
	} else if err != nil {
		return err
	}
	next := ""
	switch {
	case f.Loop != "":
		next = f.Loop
	case more && l.sendToken:
		next = l.end(t, page[len(page)-1]).encode()
	}
	if t.kind == kindLogs && l.field == "" { // they come through an index of another order
		slices.SortStableFunc(page, func(a, b *row) int { return strings.Compare(a.result, b.result) })
	}
	items, err := s.items(t, l, page)
	if err != nil {
		return err
	}
	return s.writeList(w, t, items, next)
}

// items gives rows as they are sent, or refuses to send so much at once.
func (s *Server) items(t target, l listQuery, page []*row) ([]any, error) {
	items := make([]any, 0, len(page))
	size := 0
	for _, r := range page {
		if t.kind == kindResults {
			items = append(items, s.dialect(l.only.cut(r.resultJSON())))
			continue
		}
		item := r.recordJSON(t.kind, l.only)
		if item.Data != nil {
			size += len(item.Data.Value) / 4 * 3
		}
		items = append(items, s.dialect(item))
	}
	if size > s.cfg.MaxAnswer {
		message := fmt.Sprintf("grpc: trying to send message larger than max (%d vs. %d)", size, s.cfg.MaxAnswer)
		return nil, &refusal{http.StatusTooManyRequests, codeExhausted, message}
	}
	return items, nil
}

// page gives the rows of one page, and whether more follow.
func (l listQuery) page(t target, selects predicate, rows []*row) (page []*row, more bool, err error) {
	for _, r := range rows {
		if (t.kind == kindLogs && r.kind != logType) || (t.kind != kindResults && t.result != anyName && r.result != t.result) {
			continue
		}
		ok, err := selects(&decoded{row: r})
		if err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		if len(page) == l.size {
			return page, true, nil
		}
		page = append(page, r)
	}
	return page, false, nil
}

func (s *Server) writeList(w http.ResponseWriter, t target, items []any, next string) error {
	name, token := kindRecords, "next_page_token"
	if t.kind == kindResults {
		name = kindResults
	}
	body := map[string]any{}
	if s.cfg.OldDialect {
		token = "nextPageToken"
		body[name], body[token] = items, next
	}
	if len(items) > 0 {
		body[name] = items
	}
	if next != "" {
		body[token] = next
	}
	return s.write(w, body)
}
