#pragma once
#define ROWS 300
#define AT(u, j, i) u[(j) * COLUMNS + (i)]
