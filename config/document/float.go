// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import "strconv"

// Shortest is the number that a float32 is written as: of the decimal numbers
// that are read back as f, the one with the fewest digits. 0.1 stays 0.1, where
// a plain conversion gives 0.10000000149011612. Infinities and NaN are
// themselves.
func Shortest(f float32) float64 {
	shortest, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64) // it reads what it writes
	return shortest
}
