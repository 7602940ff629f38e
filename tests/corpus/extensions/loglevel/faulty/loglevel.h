extern unsigned long level;
