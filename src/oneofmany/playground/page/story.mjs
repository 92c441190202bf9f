// The three boards of the story, and the examples of every task.

export const STORY = [
  {
    name: "One answer",
    hash: "#nqueens/8/...51...",
    told:
      "Eight queens, none of which may attack another. Two are given, and there is <b>only one way</b> to place the " +
      "other six. All three networks find it.",
    onward: "Next: two answers",
  },
  {
    name: "Two answers",
    hash: "#nqueens/8/..7....6",
    told:
      'This board has two right answers, <span class="blue">blue</span> and <span class="orange">orange</span>, and ' +
      "the training data list both. <b>Naive</b> learns both at once and mixes them. <b>MinLoss</b> and " +
      "<b>SelectR</b> commit to one.",
    onward: "Next: their average",
  },
  {
    name: "Their average is none",
    hash: "#nqueens/8/25......",
    told:
      "Half a queen here, half a queen there: the average of both answers is <b>what Naive learns</b>, and read as an " +
      "answer it breaks the rules. <b>MinLoss</b> trains on the listed answer nearest to its own prediction, " +
      "<b>SelectR</b> lets a second network choose one.",
    onward: "Now try your own",
  },
];

export const TASKS = {
  nqueens: {
    name: "N-Queens",
    start: 8,
    board: (n) => `${n} queens`,
    hint: "Click a field to place or remove a queen. Keys: arrows and Enter.",
    examples: [
      ["8 queens, two answers", "#nqueens/8/25......"],
      ["10 queens, two answers", "#nqueens/10/83.9.6.7.."],
      ["8 queens, empty: 92 answers", "#nqueens/8/........"],
      ["4 queens, empty: two answers", "#nqueens/4/...."],
    ],
  },
  sudoku: {
    name: "Sudoku",
    start: 9,
    board: (n) => `${n}\u00a0×\u00a0${n}`,
    hint: "Select a cell, then type a value or use the pad. Or paste a Sudoku anywhere on this page.",
    examples: [
      ["9 × 9, one answer", "#sudoku/9/53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"],
      ["9 × 9, three answers", "#sudoku/9/...92.5.........4..8......6..9..4..33.8.....9..56..7....2.716..5..46.89.8....32.4"],
      ["6 × 6, two answers", "#sudoku/6/5..2..4.1....5.........36.53......61"],
      ["4 × 4, empty: 288 answers", "#sudoku/4/................"],
    ],
  },
  futoshiki: {
    name: "Futoshiki",
    start: 5,
    board: (n) => `${n}\u00a0×\u00a0${n}`,
    hint: "Every row and column has each value once. Click between two cells for an inequality (keys: < > ^ v).",
    examples: [
      ["5 × 5, inequalities only", "#futoshiki/5/........................./9-4,0-1,13-14,15-20,8-3,11-12,9-14,11-10,23-24,8-13,18-13,16-17,11-6,8-9,7-12,5-6"],
      ["5 × 5, two answers", "#futoshiki/5/........................./7-8,13-18,19-18,0-5,3-8,9-8,7-12,20-21,10-11,6-11,10-5,21-22,13-14,18-23,7-2,4-9"],
      ["6 × 6, three answers", "#futoshiki/6/6.13..31....5436.1..21.3....16.56.3./23-29,11-5,17-16,4-10,25-26,24-25,6-0,25-31"],
    ],
  },
};
