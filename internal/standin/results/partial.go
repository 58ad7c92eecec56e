package results

import (
	"encoding/json"
	"strings"
)

// selection is the parameter fields: the paths that are sent. Nil sends all.
type selection struct {
	below map[string]*selection // empty: everything below
}

// selected reads the parameter fields, of which item is the list: records.
func selected(fields, list string) (items *selection, token bool) {
	if fields == "" {
		return nil, true
	}
	root := &selection{}
	for path := range strings.SplitSeq(fields, ",") {
		at := root
		for step := range strings.SplitSeq(strings.TrimSpace(path), ".") {
			if at.below == nil {
				at.below = map[string]*selection{}
			}
			if at.below[step] == nil {
				at.below[step] = &selection{}
			}
			at = at.below[step]
		}
	}
	_, token = root.below["next_page_token"]
	items = root.below[list]
	if items == nil {
		items = &selection{below: map[string]*selection{"-": {}}}
	}
	return items, token
}

// at gives the selection below a path, and whether the path is sent at all.
func (s *selection) at(path ...string) (*selection, bool) {
	for _, step := range path {
		if s == nil || len(s.below) == 0 {
			return nil, true
		}
		next, ok := s.below[step]
		if !ok {
			return nil, false
		}
		s = next
	}
	return s, true
}

func (s *selection) has(path ...string) bool { _, ok := s.at(path...); return ok }

// cut leaves what is selected of an item.
func (s *selection) cut(i itemJSON) itemJSON {
	if s == nil || len(s.below) == 0 {
		return i
	}
	for name, text := range map[string]*string{
		"name": &i.Name, "id": &i.ID, "uid": &i.UID, "etag": &i.Etag, "created_time": &i.CreatedTime, "create_time": &i.CreateTime,
		"updated_time": &i.UpdatedTime, "update_time": &i.UpdateTime,
	} {
		if !s.has(name) {
			*text = ""
		}
	}
	if !s.has("annotations") {
		i.Annotations = nil
	}
	if !s.has("summary") {
		i.Summary = nil
	}
	if i.Data != nil && !s.has("data", "type") {
		i.Data.Type = ""
	}
	return i
}

// cutValue leaves what is selected of a record's JSON; what is not there is null.
func (s *selection) cutValue(value []byte) []byte {
	below, _ := s.at("data", "value")
	if below == nil || len(below.below) == 0 {
		return value
	}
	var tree any
	if json.Unmarshal(value, &tree) != nil {
		return value
	}
	cut, err := json.Marshal(below.leave(tree))
	if err != nil {
		return value
	}
	return cut
}

func (s *selection) leave(v any) any {
	object, ok := v.(map[string]any)
	if len(s.below) == 0 || !ok {
		return v
	}
	kept := map[string]any{}
	for name, below := range s.below {
		if field, ok := object[name]; ok {
			kept[name] = below.leave(field)
		} else {
			kept[name] = nil
		}
	}
	return kept
}
