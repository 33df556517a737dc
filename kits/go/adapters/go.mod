module example.com/purgatorio/kits/go/adapters

go 1.21

require (
	example.com/purgatorio/kits/go v0.0.0
	github.com/RussellLuo/timingwheel v0.0.0-20220218152713-54845bda3108
	github.com/antlabs/timer v0.1.4
	github.com/rfyiamcool/go-timewheel v1.1.0
)

require github.com/antlabs/stl v0.0.2 // indirect

replace example.com/purgatorio/kits/go => ../
