package prom_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/record"
)

// expressions returns all queries of the dashboard, with the variables of Grafana.
func expressions(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Type, Definition string
				Query            any
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			query, _ := v.Query.(map[string]any)
			require.Equal(t, v.Definition, query["query"], "Grafana runs the query, and shows the definition")
			queries = append(queries, v.Definition)
		}
	}
	return queries
}

// exposed returns the names of the series after a workload.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	var gatherer prometheus.Gatherer
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		gatherer = registry(t, r)
		work(t, r)
	})
	families, err := gatherer.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

var metricName = regexp.MustCompile(`\blocks_[a-z_]+`)

// base returns the name of the histogram that has the series.
func base(series string) string {
	return regexp.MustCompile(`_seconds_(bucket|sum|count)$`).ReplaceAllString(series, "_seconds")
}

func TestDashboardAndAlertsNameOnlyExportedSeries(t *testing.T) {
	names := exposed(t)
	require.Len(t, names, 9)
	alerts, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	for page, text := range map[string]string{
		"dashboard.json": strings.Join(expressions(t), "\n"),
		"alerts.yml":     string(alerts),
	} {
		used := metricName.FindAllString(text, -1)
		require.NotEmpty(t, used, page)
		for _, name := range used {
			require.True(t, names[base(name)], "%s: no metric is called %s", page, name)
		}
	}
}

func TestTheReadmeExplainsEveryMetricAndNoOther(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, name := range metricName.FindAllString(string(text), -1) {
		explained[base(name)] = true
	}
	names := exposed(t)
	require.Equal(t, slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(explained)))
}

func TestTheDashboardShowsEveryMetric(t *testing.T) {
	shown := strings.Join(expressions(t), "\n")
	for name := range exposed(t) {
		require.Contains(t, shown, name+"{")
	}
}
