import { print, type Io } from '../io.ts'
import { safeLine } from './bytes.ts'
import { painter, type Paint, type Style } from './style.ts'

/** Returns the style of a cell, in a row before it is formatted. */
export type CellStyle = (row: readonly string[], column: number) => Style | undefined

/** Formats rows under headings, and escapes their cells. A column is as wide as its longest cell; columns of numbers are aligned right. */
export function table(
  head: readonly string[],
  given: readonly (readonly string[])[],
  paint: Paint = (_, text) => text,
  styleOf: CellStyle = () => undefined,
): string[] {
  const rows = given.map((row) => row.map(safeLine))
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  const isNumeric = head.map((_, column) =>
    rows.every((row) => /^(?:\d[\d,]*(?:\.\d+)?(?: %)?|-)?$/.test(row[column] ?? '')),
  )
  return all.map((row) => {
    const cells = row.map((cell, column) => {
      const style = row === head ? 'heading' : styleOf(row, column)
      const blanks = ' '.repeat(widths[column]! - cell.length)
      const shown = style === undefined ? cell : paint(style, cell)
      return isNumeric[column] ? blanks + shown : shown + blanks
    })
    return cells.join('  ').trimEnd()
  })
}

/** Prints a table, with colours on a terminal. */
export const printTable = (
  io: Io,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  styleOf?: CellStyle,
): void => print(io, ...table(head, rows, painter(io, io.stdout), styleOf))
