/** The version of this product, as snapshots, health and `--version` say it; the same as in package.json. */
export const VERSION = '0.1.0';
