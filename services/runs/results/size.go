package results

const (
	// minPage is the smallest page that Results gives.
	minPage = 5
	// maxPatience is how many pages go well at most before more is asked for. A
	// page that is too large costs Results as much as one that it sends.
	maxPatience = 64
)

// pageSize is how many records of a list are asked for at once. Some lists have a
// few records that are many times larger than the others: the size that fits them
// is grown out of again, later each time that this was too early.
type pageSize struct {
	now, most int
	well      int // pages since now was changed
	patience  int // how many make it grow
}

func newPageSize(most int) pageSize { return pageSize{now: most, most: most, patience: 1} }

// shrink reports false when there is no smaller page.
func (s *pageSize) shrink() bool {
	if s.now <= minPage {
		return false
	}
	s.now, s.well, s.patience = max(minPage, s.now/4), 0, min(maxPatience, 2*s.patience)
	return true
}

// passed notes that a page of the size was sent.
func (s *pageSize) passed() {
	if s.well++; s.now < s.most && s.well >= s.patience {
		s.now, s.well = min(s.most, 2*s.now), 0
	}
}
