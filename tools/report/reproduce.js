// The page of reproduced results has its tables and plots already; the style sheet colors both.

listenToTheme(() => {}, () => {});
