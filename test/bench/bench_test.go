package bench

import "testing"

func BenchmarkEngines(b *testing.B) {
	for _, s := range subjects(b) {
		for _, m := range measurements(b, s) {
			b.Run("op="+m.operation+"/object="+s.name+"/engine="+m.engine, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got, err := m.run(); err != nil || got != m.want {
						b.Fatalf("%d results, want %d; error: %v", got, m.want, err)
					}
				}
			})
		}
	}
}
