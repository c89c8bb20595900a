/** Formats rows under headings. A column is as wide as its longest cell; columns of numbers are aligned right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  const isNumeric = head.map((_, column) => rows.every((row) => /^(?:[\d.,]+|-)?$/.test(row[column] ?? '')))
  return all.map((row) =>
    row
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  )
}
