extern _Atomic unsigned long level;
