"""Long runs whose memory must stay flat and whose rate steady; `make soak`, an hour each."""
