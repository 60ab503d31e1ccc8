// Amounts of money and durations in words, as `domain/amounts.py` writes them, for figures that change on a live page.

import { count } from "./dom.js";

export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function money(usd) {
  if (usd === 0) return "$0";
  if (usd < 0.0001) return "less than $0.0001";
  if (usd < 0.1) return `$${usd.toFixed(4).replace(/0{1,2}$/, "")}`;
  const [whole, cents] = usd.toFixed(usd < 1000 ? 2 : 0).split(".");
  return `$${count(Number(whole))}${cents ? `.${cents}` : ""}`;
}
