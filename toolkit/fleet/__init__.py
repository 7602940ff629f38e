"""The same run on many hosts, through dask.distributed: whole rounds travel, never arms."""
