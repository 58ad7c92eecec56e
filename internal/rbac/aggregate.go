package rbac

import (
	"fmt"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// aggregate gives every role that aggregates others the rules of those that its
// selectors match, until nothing changes: one may aggregate another that does. It
// returns the names of those that it changed.
func aggregate(roles []rbacv1.ClusterRole) (map[string]bool, error) {
	selectors := make([][]labels.Selector, len(roles))
	for i := range roles {
		if roles[i].AggregationRule == nil {
			continue
		}
		for j := range roles[i].AggregationRule.ClusterRoleSelectors {
			s, err := metav1.LabelSelectorAsSelector(&roles[i].AggregationRule.ClusterRoleSelectors[j])
			if err != nil {
				return nil, fmt.Errorf("ClusterRole %s: %w", roles[i].Name, err)
			}
			selectors[i] = append(selectors[i], s)
		}
	}
	changed := map[string]bool{}
	// Each round carries rules one role further, so as many as there are roles
	// are enough.
	for range roles {
		quiet := true
		for i := range roles {
			if roles[i].AggregationRule == nil {
				continue
			}
			if rules := gathered(roles, i, selectors[i]); !reflect.DeepEqual(rules, roles[i].Rules) {
				roles[i].Rules, changed[roles[i].Name], quiet = rules, true, false
			}
		}
		if quiet {
			break
		}
	}
	return changed, nil
}

func gathered(roles []rbacv1.ClusterRole, at int, selectors []labels.Selector) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i := range roles {
		if i == at || !matches(selectors, roles[i].Labels) {
			continue
		}
		for _, r := range roles[i].Rules {
			if !has(rules, r) {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

func matches(selectors []labels.Selector, set labels.Set) bool {
	for _, s := range selectors {
		if s.Matches(set) {
			return true
		}
	}
	return false
}

func has(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	for _, r := range rules {
		if reflect.DeepEqual(r, rule) {
			return true
		}
	}
	return false
}
