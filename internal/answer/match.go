package answer

import "strings"

// matches reads If-None-Match (RFC 9110, section 13.1.2): whether it is "*" or
// lists etag, by weak comparison. etag is a strong one. What follows a fault in
// the list does not count: a caller then gets the body once more.
func matches(fields []string, etag string) bool {
	list := strings.Trim(strings.Join(fields, ","), " \t")
	if list == "*" {
		return true
	}
	for list != "" {
		if list[0] == ',' || list[0] == ' ' || list[0] == '\t' {
			list = list[1:]
			continue
		}
		tag, rest, ok := cutTag(list)
		if !ok {
			return false
		}
		if tag == etag {
			return true
		}
		list = rest
	}
	return false
}

// cutTag takes the entity tag at the start of list, without its weakness.
func cutTag(list string) (tag, rest string, ok bool) {
	list = strings.TrimPrefix(list, "W/")
	if len(list) == 0 || list[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", "", false
	}
	tag, rest = list[:end+2], list[end+2:]
	// A tag ends a member of the list.
	if next := strings.TrimLeft(rest, " \t"); next != "" && next[0] != ',' {
		return "", "", false
	}
	return tag, rest, true
}
