module example.com/purgatorio/kits/go

go 1.21
