import { expect, it } from 'vitest'
import { html, markdown, type Run } from './report.ts'

const run: Run = {
  date: '2026-01-02',
  machine: { processor: 'P <1>', cores: 4, memoryGiB: 8, system: 'Linux', node: 'v20', java: '17' },
  versions: { zabra: '1', apache: '3.8' },
  options: { seconds: 5 },
  rounds: 2,
  warnings: ['gets'],
  figures: [
    {
      name: 'gets',
      caseName: 'throughput-1',
      unit: 'op/s',
      better: 'higher',
      aim: 4,
      values: { zabra: [400, 500], apache: [100, 100] },
    },
    {
      name: 'alone',
      caseName: 'ceiling',
      unit: 'op/s',
      better: 'higher',
      values: { zabra: [9], apache: [] },
    },
  ],
  series: [
    {
      name: 'resident memory',
      caseName: 'ceiling',
      unit: 'MB',
      kind: 'zabra',
      points: [
        { at: 0, value: 50 },
        { at: 60, value: 100 },
      ],
    },
    {
      name: 'resident memory',
      caseName: 'ceiling',
      unit: 'MB',
      kind: 'apache',
      points: [{ at: 30, value: 25 }],
    },
  ],
}

it('markdown prints a table with ratios, aims and spreads', () => {
  expect(markdown(run).split('\n')).toEqual([
    '| figure | Zabra | Apache ZooKeeper | ratio | aim | spread |',
    '| --- | ---: | ---: | ---: | --- | --- |',
    '| gets (op/s) | 450 | 100 | 4.50 | ≥ 4.0 reached | ±11 %, ±0 % |',
    '| alone (op/s) | 9.00 |  |  |   |  |',
  ])
})

it('html names the machine, the warnings and every figure', () => {
  const page = html(run)
  expect(page).toContain('P &lt;1>')
  expect(page).toContain('<b>Noisy:</b> gets')
  expect(page.match(/<svg/g)).toHaveLength(3)
  expect(page).toContain('<h2>throughput-1</h2>')
  expect(page).toContain('class="reached"')
  expect(page).not.toContain('NaN')
})

it('html draws the series of both peers on one scale', () => {
  const page = html(run)
  expect(page).toContain('<h3>resident memory (MB)</h3>')
  expect(page.match(/<polyline [^>]*points="([^"]*)"/g)).toEqual([
    '<polyline fill="none" stroke="#2b7a4b" stroke-width="1.5" points="70.0,64.0 710.0,4.0"',
    '<polyline fill="none" stroke="#8a98a3" stroke-width="1.5" points="390.0,94.0"',
  ])
})
