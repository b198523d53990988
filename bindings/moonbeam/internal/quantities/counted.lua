--- A number of things in words: "1 channel", "2 channels". `words`: of several, by default the word
-- with an s.
return function(count, word, words)
    return ("%d %s"):format(count, count == 1 and word or words or word .. "s")
end
