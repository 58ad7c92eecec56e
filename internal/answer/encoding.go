package answer

import (
	"strconv"
	"strings"
)

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3): whether gzip is
// acceptable and wanted at least as much as the body itself. Several fields
// count as one list; a member that cannot be read counts as absent.
func acceptsGzip(fields []string) bool {
	// Weights in thousandths, -1 while unnamed.
	gzip, identity, rest := -1, -1, -1
	for _, field := range fields {
		for member := range strings.SplitSeq(field, ",") {
			coding, weight, ok := parseCoding(member)
			if !ok {
				continue
			}
			switch coding {
			case "gzip", "x-gzip":
				gzip = max(gzip, weight)
			case "identity":
				identity = max(identity, weight)
			case "*":
				rest = max(rest, weight)
			}
		}
	}
	if gzip < 0 {
		gzip = max(rest, 0) // unnamed and no "*": not acceptable
	}
	if identity < 0 {
		identity = rest
	}
	return gzip > 0 && gzip >= identity
}

// parseCoding reads `coding` or `coding;q=weight`, the weight in thousandths.
func parseCoding(member string) (coding string, weight int, ok bool) {
	coding, param, weighted := strings.Cut(member, ";")
	coding = strings.ToLower(strings.Trim(coding, " \t"))
	if coding == "" {
		return "", 0, false
	}
	if !weighted {
		return coding, 1000, true
	}
	name, value, _ := strings.Cut(strings.Trim(param, " \t"), "=")
	if !strings.EqualFold(name, "q") {
		return "", 0, false
	}
	weight, ok = parseWeight(value)
	return coding, weight, ok
}

// parseWeight reads 0 to 1 with at most three decimals (RFC 9110, section
// 12.4.2).
func parseWeight(value string) (thousandths int, ok bool) {
	whole, decimals, _ := strings.Cut(value, ".")
	if (whole != "0" && whole != "1") || len(decimals) > 3 || strings.Trim(decimals, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(whole + (decimals + "000")[:3])
	if err != nil || n > 1000 {
		return 0, false
	}
	return n, true
}
