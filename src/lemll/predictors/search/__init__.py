"""The search over parameters behind `LEMLLCV` and `MSVRCV`: folds, points, trials."""
