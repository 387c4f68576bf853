package stores

import (
	"curt/internal/backend/zookeeper"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/telemetry"
)

// openIDs returns where ids are leased: the link store, or what CURT_IDS names, confirmed by the link store.
func openIDs(env *compose.Env, s *Stores, c *compose.Capability) (codegen.Leaser, error) {
	if env.ZooKeeper == nil {
		return s.Leases, nil
	}
	z, err := zookeeper.Open(*env.ZooKeeper)
	if err != nil {
		return nil, err
	}
	c.OnClose(z.Close)
	c.Run("zookeeper", z.Run)
	c.Need("zookeeper", false, z.Healthy)
	ids := codegen.NewConfirmed(z, s.Leases, env.Log)
	c.Count(func(m *telemetry.Metrics) {
		m.Gauge("curt_zookeeper_up", "1 while there is a session of ZooKeeper.", func() float64 {
			if z.Healthy() != nil {
				return 0
			}
			return 1
		})
		m.Counter("curt_id_leases_behind_total", "Times that ZooKeeper was behind the link store and was moved: it was restored, emptied, or unused for a while.", ids.Corrections)
	})
	return ids, nil
}
